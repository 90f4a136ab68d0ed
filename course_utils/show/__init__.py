"""Pictures in one style: axes have units, and each rank always has the same colour."""

from course_utils.show.collectives import collective, steps
from course_utils.show.curves import costs, histogram, series
from course_utils.show.grids import Matrix, matrices, pictures
from course_utils.show.lanes import overlap, timeline
from course_utils.show.pipeline_lanes import schedules
from course_utils.show.tape_graph import tape
from course_utils.show.volumes import buckets, bytes_alive, bytes_per_rank, zero_stages

__all__ = [
    "Matrix",
    "buckets",
    "bytes_alive",
    "bytes_per_rank",
    "collective",
    "costs",
    "histogram",
    "matrices",
    "overlap",
    "pictures",
    "schedules",
    "series",
    "steps",
    "tape",
    "timeline",
    "zero_stages",
]
