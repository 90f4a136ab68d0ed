#!/usr/bin/env bash
# Gradescope runs this once, as root, while it builds the image in which answers are graded.
# The zip file that you upload holds this file, run_autograder, and the course in course/.
# The image needs Python 3.11 or newer: without it, run.sh says so, and the build fails.
set -eu
apt-get -qq install -y python3 python3-venv
cd "${AUTOGRADER:-/autograder}/source/course"
COURSE_TORCH=cpu ./run.sh setup
