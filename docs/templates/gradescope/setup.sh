#!/usr/bin/env bash
# Gradescope runs this once, as root, while it builds the image in which answers are graded.
# The zip file that you upload holds this file, run_autograder, and the course in course/.
# The image needs Python 3.11 or newer: without it, run.sh says so, and the build fails.
set -eu
apt-get -qq install -y python3 python3-venv
home=${AUTOGRADER:-/autograder}
python3 -m venv "$home/uv" # with uv, run.sh can install torch's build for CPUs
"$home/uv/bin/python" -m pip install -q uv==0.13.9
cd "$home/source/course"
PATH=$home/uv/bin:$PATH COURSE_TORCH=cpu ./run.sh setup
