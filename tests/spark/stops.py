"""Jobs that stop in the middle."""

import io

from spark_jobs.spark.progress import Progress, Stage


class StopHere(Exception):
    """Stands for the end of the process."""


class StopsAfter(Progress):
    """Stops the job after a number of stages or parts of stages."""

    def __init__(self, stages: int | None) -> None:
        super().__init__(io.StringIO(), as_json=True)
        self._left = stages

    def enter(self, stage: Stage, *, part: int = 0, parts: int = 1) -> None:
        super().enter(stage, part=part, parts=parts)
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                raise StopHere
