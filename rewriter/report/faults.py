"""What can be wrong with a result folder."""


class ReportError(ValueError):
    """A result folder that no report can be made of; the message says what to do."""


def missing_extra(package: str) -> ReportError:
    """The error of a package that a plain install does not hold."""
    return ReportError(f'{package} is not installed; pip install "rlqr[report]"')
