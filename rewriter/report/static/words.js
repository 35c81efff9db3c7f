// Which words of two texts are the same, by their longest common subsequence.

const PIECE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{M}\p{N}_]+|[^\p{L}\p{M}\p{N}_]+/gu;
const WORD = /[\p{L}\p{N}]/u;
const LARGEST = 4e6; // cells of the table: beyond it words are compared by presence

const fold = (text) => text.normalize("NFKC").toLowerCase();

function pieces(text) {
  return (text.match(PIECE) || []).map((piece) => ({ text: piece, word: WORD.test(piece) ? fold(piece) : null }));
}

// For each text its pieces, each with `kept`: whether the other text has it too.
function compare(before, after) {
  const sides = [pieces(before), pieces(after)];
  const [a, b] = sides.map((list) => list.filter((piece) => piece.word !== null));
  if (a.length * b.length > LARGEST) return present(sides, a, b);
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      best[at] = a[i].word === b[j].word
        ? best[at + width + 1] + 1
        : Math.max(best[at + width], best[at + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const at = i * width + j;
    if (a[i].word === b[j].word) a[i++].kept = b[j++].kept = true;
    else if (best[at + width] >= best[at + 1]) i++;
    else j++;
  }
  return sides;
}

function present(sides, a, b) {
  const words = [a, b].map((list) => new Set(list.map((piece) => piece.word)));
  for (const piece of a) piece.kept = words[1].has(piece.word);
  for (const piece of b) piece.kept = words[0].has(piece.word);
  return sides;
}

// Runs of changed words become one element `tag`; what stands between two of them belongs to it.
function marked(list, tag) {
  const parts = [];
  let run = "", gap = "";
  const end = () => {
    if (run) parts.push(el(tag, null, run));
    if (gap) parts.push(gap);
    run = gap = "";
  };
  for (const piece of list) {
    if (piece.word === null) gap += piece.text;
    else if (piece.kept) { end(); parts.push(piece.text); }
    else if (run) { run += gap + piece.text; gap = ""; }
    else { end(); run = piece.text; }
  }
  end();
  return parts;
}
