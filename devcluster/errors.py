"""What can go wrong in a devcluster, told in words that a developer can act on."""


class DevclusterError(Exception):
    """The devcluster could not do what was asked; the message says what and where the logs are."""


class BuildError(DevclusterError):
    """A binary could not be built."""


class ScenarioError(DevclusterError):
    """A scenario file is wrong; the message names the file, the key and what is allowed."""


class KubectlError(DevclusterError):
    """kubectl answered with an error; the message is its own."""


class ApiError(DevclusterError):
    """The API server refused a request of the devcluster itself."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status}: {reason}")
        self.status = status
