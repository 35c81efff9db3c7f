"""Forty short documents, twenty in Korean and twenty in English about the same twenty topics.

A question in either language is about one topic. Its source document is the one in its own
language; the kind "both" judges the other language's document too.
"""

from collections.abc import Iterator

from retrievers.collection import Collection, Document, Query

# topic: Korean title, text and question; English title, text and question
TOPICS: dict[str, tuple[str, str, str, str, str, str]] = {
    "tax": (
        "종합소득세 신고",
        "개인 사업자는 해마다 오월 말까지 세무서에 소득을 신고하고 세금을 낸다. 늦으면 "
        "가산세가 붙는다.",
        "세금을 신고하는 기한은 언제까지인가요?",
        "Filing income tax",
        "Self-employed people file a return with the tax office by the end of May. A late return "
        "costs a penalty.",
        "By when do I have to file my tax return?",
    ),
    "passport": (
        "여권 재발급",
        "여권을 잃어버리면 구청 민원실에 분실을 알리고 사진 한 장과 수수료를 내면 다시 받을 수 "
        "있다.",
        "여권을 잃어버렸는데 어디에 가야 하나요?",
        "Replacing a passport",
        "A lost passport is reported at the district office; a photo and a fee are needed for a "
        "new one.",
        "I lost my passport, where do I get a new one?",
    ),
    "library": (
        "도서관 대출 규칙",
        "시립 도서관에서는 한 사람이 책을 다섯 권까지 두 주 동안 빌리고 한 번 연장할 수 있다.",
        "도서관에서 책을 몇 권까지 빌릴 수 있나요?",
        "Library lending rules",
        "The city library lends each reader up to five books for two weeks, with one renewal.",
        "How many books can I borrow from the library?",
    ),
    "parking": (
        "공영 주차장 요금",
        "공영 주차장은 십 분마다 오백 원을 받고, 전기차와 경차는 절반만 낸다.",
        "전기차의 주차 요금은 얼마나 할인되나요?",
        "Public parking charges",
        "Public car parks charge for every ten minutes; electric and small cars pay half.",
        "What discount do electric cars get on parking?",
    ),
    "kimchi": (
        "김치 담그기",
        "배추를 소금에 절인 뒤 고춧가루와 마늘, 젓갈로 만든 양념을 잎 사이에 바르고 서늘한 "
        "곳에서 익힌다.",
        "배추김치 양념에는 무엇이 들어가나요?",
        "Making kimchi",
        "Salted cabbage leaves are spread with a paste of chili, garlic and fish sauce, then left "
        "to ferment in a cool place.",
        "What goes into the paste for cabbage kimchi?",
    ),
    "subway": (
        "지하철 막차 시간",
        "지하철 막차는 평일에 자정을 조금 넘겨 떠나고 주말에는 한 시간 일찍 끊긴다.",
        "주말에 지하철 막차는 몇 시에 끊기나요?",
        "Last subway trains",
        "On weekdays the last subway leaves shortly after midnight, at weekends an hour earlier.",
        "When does the last subway leave at weekends?",
    ),
    "recycling": (
        "재활용품 분리배출",
        "페트병은 상표를 떼고 헹구어 찌그러뜨린 다음 투명 봉투에 따로 내놓는다.",
        "페트병은 어떻게 분리배출하나요?",
        "Sorting recyclables",
        "Plastic bottles are rinsed, stripped of their labels, crushed and put out in a clear bag.",
        "How should plastic bottles be recycled?",
    ),
    "vaccine": (
        "독감 예방접종",
        "예순다섯 살이 넘은 어르신과 임신부는 가을마다 보건소에서 독감 주사를 무료로 맞는다.",
        "독감 예방접종을 무료로 받을 수 있는 사람은 누구인가요?",
        "Flu vaccination",
        "People over sixty-five and pregnant women get a free flu shot at the health centre every "
        "autumn.",
        "Who gets the flu vaccine for free?",
    ),
    "earthquake": (
        "지진이 났을 때",
        "흔들림이 느껴지면 튼튼한 탁자 밑에 들어가 머리를 감싸고, 멈춘 뒤에 계단으로 밖으로 "
        "나간다.",
        "지진으로 건물이 흔들리면 어떻게 해야 하나요?",
        "In an earthquake",
        "When the ground shakes, get under a sturdy table and cover your head; leave by the stairs "
        "once it stops.",
        "What should I do when an earthquake shakes the building?",
    ),
    "loan": (
        "전세 자금 대출",
        "은행은 보증금의 팔십 퍼센트까지 전세 자금을 빌려주며 이자는 소득에 따라 달라진다.",
        "전세 보증금 대출은 은행에서 얼마까지 나오나요?",
        "Housing deposit loans",
        "Banks lend up to eighty percent of a housing deposit; the interest depends on income.",
        "How much of a housing deposit will the bank lend me?",
    ),
    "beekeeping": (
        "벌통의 겨울나기",
        "양봉가는 찬 바람을 막으려고 벌통을 짚으로 싸고, 꿀이 모자라면 설탕물을 준다.",
        "겨울에 벌통을 어떻게 보호하나요?",
        "Beehives in winter",
        "Beekeepers wrap hives in straw against the cold wind and feed sugar water when honey runs "
        "short.",
        "How are beehives protected in winter?",
    ),
    "moon": (
        "달의 모양이 바뀌는 까닭",
        "달은 지구를 돌면서 햇빛을 받는 쪽이 달라 보여 초승달에서 보름달로 모양이 바뀐다.",
        "보름달과 초승달처럼 달의 모양은 왜 바뀌나요?",
        "Why the moon has phases",
        "As the moon circles the earth we see more or less of its sunlit side, from crescent to "
        "full.",
        "Why does the moon change from crescent to full?",
    ),
    "bicycle": (
        "자전거 바퀴 구멍 때우기",
        "튜브를 꺼내 물에 담가 거품이 나는 구멍을 찾고, 사포로 문지른 뒤 조각을 붙인다.",
        "자전거 튜브에 난 구멍은 어떻게 찾나요?",
        "Mending a bicycle tube",
        "Hold the inner tube under water, look for bubbles, sand the spot and press a patch on it.",
        "How do I find the hole in a bicycle tube?",
    ),
    "coffee": (
        "커피 내리기",
        "물 온도가 너무 높으면 쓴맛이 나므로 구십 도쯤에서 천천히 부어 커피를 내린다.",
        "커피를 내릴 때 물 온도는 몇 도가 좋은가요?",
        "Brewing coffee",
        "Water that is too hot makes coffee bitter: pour it slowly at about ninety degrees.",
        "How hot should the water for brewing coffee be?",
    ),
    "password": (
        "안전한 비밀번호",
        "비밀번호는 길수록 안전하며, 누리집마다 다르게 정하고 두 단계 인증을 함께 쓴다.",
        "안전한 비밀번호는 어떻게 정하나요?",
        "Safe passwords",
        "Long passwords are safer; choose another one for every site and add a second factor.",
        "How do I choose a safe password?",
    ),
    "whale": (
        "고래의 숨쉬기",
        "고래는 허파로 숨을 쉬는 젖먹이 동물이어서 물 위로 올라와 숨구멍으로 공기를 내뿜는다.",
        "고래는 물속에 살면서 숨을 어떻게 쉬나요?",
        "How whales breathe",
        "Whales are mammals with lungs: they come up and blow air out through a hole on the head.",
        "How do whales breathe although they live in water?",
    ),
    "museum": (
        "박물관 휴관일",
        "국립 박물관은 월요일과 설날, 추석에 문을 닫고 수요일에는 밤 아홉 시까지 연다.",
        "박물관은 무슨 요일에 문을 닫나요?",
        "Museum closing days",
        "The national museum is closed on Mondays and holidays and stays open until nine on "
        "Wednesdays.",
        "On which day is the museum closed?",
    ),
    "rice": (
        "벼농사의 한 해",
        "농부는 봄에 모를 심고 여름 내내 논에 물을 대며 가을에 누렇게 익은 벼를 거둔다.",
        "논에 심은 벼는 언제 거두나요?",
        "A year of rice farming",
        "Farmers plant rice seedlings in spring, flood the paddies all summer and harvest in "
        "autumn.",
        "When is rice harvested from the paddies?",
    ),
    "interview": (
        "면접 준비",
        "면접에서는 지원한 까닭과 지난 경험을 짧게 말하고, 회사에 묻고 싶은 것도 준비한다.",
        "회사 면접에서는 무엇을 준비해야 하나요?",
        "Preparing for a job interview",
        "Say briefly why you applied and what you have done, and bring questions for the company.",
        "How do I prepare for a job interview?",
    ),
    "typhoon": (
        "태풍에 대비하기",
        "태풍이 오기 전에 창문을 단단히 잠그고 간판과 화분을 묶으며 배는 항구로 옮긴다.",
        "태풍이 오기 전에 창문과 화분은 어떻게 하나요?",
        "Getting ready for a typhoon",
        "Before a typhoon lock the windows, tie down signs and plant pots, and bring boats into "
        "port.",
        "What has to be tied down before a typhoon comes?",
    ),
}
LANGUAGES = ("ko", "en")


def documents() -> Iterator[Document]:
    """`tax-ko`, `tax-en`, …"""
    for topic, (*korean, _, title, text, _) in TOPICS.items():
        yield Document(f"{topic}-ko", *korean)
        yield Document(f"{topic}-en", title, text)


def questions(language: str) -> dict[str, str]:
    """Topic → question in "ko" or "en"."""
    place = {"ko": 2, "en": 5}[language]
    return {topic: texts[place] for topic, texts in TOPICS.items()}


def collection() -> Collection:
    """All of it; the splits are the languages of the questions."""
    queries = [
        Query(f"{topic}-{language}", text, source=f"{topic}-{language}")
        for language in LANGUAGES
        for topic, text in questions(language).items()
    ]
    qrels = {
        language: {
            "source": {f"{topic}-{language}": {f"{topic}-{language}": 1.0} for topic in TOPICS},
            "both": {
                f"{topic}-{language}": {f"{topic}-{one}": 1.0 for one in LANGUAGES}
                for topic in TOPICS
            },
        }
        for language in LANGUAGES
    }
    return Collection.from_documents("bilingual", documents(), queries, qrels)
