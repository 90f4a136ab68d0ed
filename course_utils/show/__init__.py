"""Pictures, of one family: axes with units, and each rank always in its own colour."""

from course_utils.show.bucket_plan import buckets
from course_utils.show.collectives import collective
from course_utils.show.cost_curves import costs
from course_utils.show.curves import series
from course_utils.show.histograms import histogram
from course_utils.show.matrix_grid import Matrix, matrices
from course_utils.show.memory import bytes_alive
from course_utils.show.overlap_chart import overlap
from course_utils.show.picture_grid import pictures
from course_utils.show.ring_steps import ring
from course_utils.show.tape_graph import tape
from course_utils.show.timelines import timeline
from course_utils.show.volume import bytes_per_rank
from course_utils.show.zero import zero_stages

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
    "ring",
    "series",
    "tape",
    "timeline",
    "zero_stages",
]
