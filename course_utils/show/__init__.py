"""Pictures in one style: axes have units, and each rank always has the same colour.

In a notebook, this import also makes every figure sharp and described.
"""

from course_utils.show import inline
from course_utils.show.collectives import collective, steps
from course_utils.show.curves import series
from course_utils.show.grids import pictures
from course_utils.show.lanes import overlap, schedules, timeline
from course_utils.show.meshes import cube
from course_utils.show.tape_graph import tape
from course_utils.show.volumes import memory_per_gpu, zero_stages

inline.install()
