"""What keeps a container, a volume or a whole Pod from starting, each with Kubernetes' word for it."""


class ConfigProblem(Exception):
    """A container cannot be made as its Pod says; shown as CreateContainerConfigError and tried again."""


class VolumeProblem(Exception):
    """A volume cannot be had, now at least; shown as a FailedMount event and tried again."""

    def __init__(self, volume: str, message: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {message}')
