#!/usr/bin/env bash
# Runs the commands of the course: finds Python and, once, makes the environment in .venv.
# `./run.sh help` lists the commands. Works with bash 3.2, the one that comes with macOS.
set -u

CALLED_FROM=$PWD
ROOT=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")") # also when called through a symlink
VENV=.venv
OWN_PYTHON=$ROOT/$VENV/bin/python
STAMP=$VENV/course-stamp # the checkout, requirements and COURSE_TORCH for which .venv is complete
JUPYTER=course_utils/notebook/jupyter # what JupyterLab is told about the course
UNPACKED=$VENV/tmp       # pip unpacks beside .venv, whose disk was checked: /tmp may be small

say() { printf '%s\n' "$*" >&2; }

die() { # die STATUS WORD...
    say "run.sh: ${*:2}"
    exit "$1"
}

# --- Which Python: each of these sets PYTHON --------------------------------------------------

is_new_enough() { "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

has() { # has MODULE...: are they installed for PYTHON? Looks for them without importing them
    (cd / && "$PYTHON" -P -c 'import sys; from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "$@" 2>/dev/null)
}

need() { # need MODULE [PACKAGES]: the user's own Python may lack it
    has "$1" || die 2 "$PYTHON has no $1: install it there ($PYTHON -m pip install ${2:-$1})."
}

prefer_checkout() { export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"; }

chosen_python() { # the one that COURSE_PYTHON names; false if it is not set
    [ -n "${COURSE_PYTHON:-}" ] || return
    case $COURSE_PYTHON in
        /*) PYTHON=$COURSE_PYTHON ;;
        */*) PYTHON=$CALLED_FROM/$COURSE_PYTHON ;;
        *) PYTHON=$(command -v "$COURSE_PYTHON") ;;
    esac
    is_new_enough || die 2 "COURSE_PYTHON=$COURSE_PYTHON is not a working Python 3.11 or newer" \
        "($("$PYTHON" --version 2>&1)): name one that is, or unset it."
    prefer_checkout # the course need not be installed there
}

active_python() { # of an active environment that holds the course; false if there is none
    local folder
    for folder in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
        PYTHON=$folder/bin/python
        # Our own .venv is not taken here: only its stamp says whether it is complete.
        [ -n "$folder" ] && ! [ "$folder" -ef "$VENV" ] && [ -x "$PYTHON" ] &&
            has torch course_utils && prefer_checkout && return # not another checkout's course
    done
    return 1
}

python_on_path() { # plain python3 comes first: it is the one that the user knows
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        PYTHON=$(command -v "$name") && is_new_enough && return
    done
    die 2 "the course needs Python 3.11 or newer, and there is none on PATH" \
        "($(python3 --version 2>&1)): install one, or name it in COURSE_PYTHON."
}

own_python() { PYTHON=$OWN_PYTHON && is_new_enough; } # false as long as there is no .venv

any_python() { # for commands that need no torch: nothing is installed for them
    chosen_python || active_python || own_python || python_on_path
}

course_python() { # course_python [WORD...]: for a call that needs torch; makes .venv if needed
    chosen_python || active_python || {
        is_complete || set_up "$@"
        PYTHON=$OWN_PYTHON
    }
    need torch "torch torchvision"
}

# --- The environment of our own, .venv ----------------------------------------------------------

stamp() { echo "$ROOT" && cat requirements.txt pyproject.toml | cksum && torch_asked_for; }

torch_asked_for() { echo "${COURSE_TORCH:-$(torch_stamped)}"; } # cpu, cuda, or nothing

torch_stamped() { [ ! -e "$STAMP" ] || awk 'NR == 3' "$STAMP"; }

is_complete() { [ -x "$OWN_PYTHON" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$(stamp)" ]; }

set_up() { # set_up [WORD...]: a mistake in the call is reported before anything is installed
    [ $# -eq 0 ] || { any_python && "$PYTHON" -m course_utils --check "$@"; } || exit
    [ -w . ] || die 2 "cannot write in $ROOT, so no environment can be made there: copy the" \
        "course to a folder of yours, or name a Python that has torch in COURSE_PYTHON."
    lock
    is_complete || install # another run.sh may have finished it while this one waited
    exec 9>&-
}

lock() { # held as long as a process has descriptor 9 open: a killed one leaves no lock behind
    exec 9<>requirements.txt
    any_python && "$PYTHON" -c 'import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Waiting for the run.sh that is making .venv...", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
except OSError:  # a network disk without locks
    pass'
}

install() { # if anything interrupts it, the next call continues
    local asked cpu=''
    asked=$(torch_asked_for)
    CHILD=''
    trap 'rm -rf "$UNPACKED"' EXIT
    trap 'interrupted 129' HUP
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM
    if ! was_moved && [ "$asked" = "$(torch_stamped)" ] && own_python && has pip; then
        say "Updating $VENV to requirements.txt..."
        printf '%s\n' "$ROOT" incomplete "$asked" >"$STAMP"
        ! has_cpu_torch || cpu=yes
    else
        ! wants_cpu_torch "$asked" || cpu=yes
        make_venv "$cpu"
    fi
    mkdir -p "$UNPACKED"
    if [ "$cpu" ] && install_cpu_torch; then
        # What is left of the list: torch is there, and its build for CPUs needs none of these.
        awk '!/^(nvidia|cuda)-|^triton==/' requirements.txt >"$UNPACKED/requirements.txt"
        pip_install -r "$UNPACKED/requirements.txt"
    else
        pip_install -r requirements.txt
    fi
    pip_install --no-deps --no-build-isolation -e . # setuptools is there: needs no network
    COURSE_TORCH=$asked stamp >"$STAMP" || exit
    rm -rf "$UNPACKED"
    trap - EXIT HUP INT TERM
    say "$VENV is ready."
}

was_moved() { [ -e "$STAMP" ] && [ "$(head -n 1 "$STAMP")" != "$ROOT" ]; }

make_venv() { # make_venv [yes]: yes for torch's build for CPUs
    [ ! -e "$VENV" ] || say "Removing $VENV: it is incomplete, or was made in another folder," \
        "or for another COURSE_TORCH."
    trap 'rm -rf "$VENV"' EXIT # nothing half-made stays
    rm -rf "$VENV"
    python_on_path # only now: before, it could have found the one in .venv
    need_room "$(size "$1")"
    say "Making $VENV with $PYTHON: about $(size "$1") GB and a few minutes, once..."
    run "$PYTHON" -m venv "$VENV" ||
        die 1 "$PYTHON cannot make $VENV: on Debian and Ubuntu, install the package python3-venv."
    PYTHON=$OWN_PYTHON
}

size() { # size [yes]: GB of the whole environment; torch for macOS has no CUDA libraries either
    if [ "$1" ] || [ "$(uname)" = Darwin ]; then echo 2; else echo 6; fi
}

need_room() { # need_room GB: for what is installed, and for the wheels from which it is unpacked
    local free
    free=$(df -Pk . | awk 'END { print int($4 / 1048576) }')
    [ "$free" -ge $(($1 * 3 / 2)) ] ||
        die 1 "the setup needs $(($1 * 3 / 2)) GB, but the disk of $ROOT has only $free GB free."
}

# --- Torch's build for CPUs: a quarter of the size, where nothing uses CUDA ---------------------

wants_cpu_torch() { # wants_cpu_torch [ASKED]: unasked, where there is uv, and no NVIDIA driver
    [ "$(uname)" != Darwin ] || return # there, the usual build is one for CPUs
    [ "$1" = cpu ] || { [ -z "$1" ] && has_program uv && ! has_nvidia_driver; }
}

has_program() { command -v "$1" >/dev/null; }

has_nvidia_driver() { has_program nvidia-smi || [ -e /proc/driver/nvidia ]; }

has_cpu_torch() { compgen -G "$VENV/lib/python*/site-packages/torch-*+cpu.dist-info" >/dev/null; }

install_cpu_torch() { # uv knows where it is; false, and a sentence, if it cannot be had
    # One call for both: a CPU torch beside a CUDA torchvision fails. They need nothing yet, since
    # pip installs the rest: unlike uv, it heeds pip's settings, such as a mirror.
    # shellcheck disable=SC2046 # two words
    UV_HTTP_TIMEOUT=10 UV_HTTP_RETRIES=0 run uv pip install -q --python "$PYTHON" --no-deps \
        --torch-backend cpu $(awk '/^torch(vision)?==/' requirements.txt) 2>/dev/null && return
    say "Torch's build for CPUs cannot be had here ($(has_program uv && echo "uv does not reach it" ||
        echo "uv is not installed")): installing the usual one, about 6 GB in all."
    need_room 6
    return 1
}

pip_install() {
    run "$PYTHON" -m pip install -q --disable-pip-version-check --progress-bar off "$@" ||
        die 1 "pip could not install the course: fix what it reports above, then try again."
}

run() { # run COMMAND...: in its own process group, so that an interrupt can end all of it
    set -m
    TMPDIR=$ROOT/$UNPACKED "$@" >&2 </dev/null &
    CHILD=$!
    set +m
    wait "$CHILD"
}

interrupted() { # interrupted STATUS
    trap '' HUP INT TERM
    [ -z "$CHILD" ] || { kill -KILL -- "-$CHILD" && wait "$CHILD"; } 2>/dev/null
    sleep 0.1 # the processes that the child started end a moment later
    die "$1" "the setup was interrupted: run the same command again to continue."
}

# --- The commands -------------------------------------------------------------------------------

cd "$ROOT" || exit
[ $# -gt 0 ] || set -- demo transformer
case ${COURSE_TORCH:-} in
    '' | cpu | cuda) ;;
    *) die 2 "COURSE_TORCH=$COURSE_TORCH is neither cpu nor cuda: set it to one, or unset it." ;;
esac
case $* in help | 'help '* | 'demo --help' | 'demo -h') set -- --help ;; esac
case $1 in
    lab)
        [ "$(id -u)" != 0 ] || [[ $* == *allow*root* ]] ||
            die 2 "JupyterLab refuses to run as root: if you must, use ./run.sh lab --allow-root."
        course_python && need jupyterlab
        case $* in
            *--notebook-dir* | *root_dir*) ;; # another folder, such as the course's own notebooks
            *)
                MY=$("$PYTHON" -m course_utils lab) || exit # makes the student's copies
                set -- "$@" --notebook-dir="$MY"
                ;;
        esac
        # Kernels with the magics, also after a restart; and the first notebook open, not a launcher.
        export JUPYTER_PATH="$ROOT/$JUPYTER${JUPYTER_PATH:+:$JUPYTER_PATH}"
        export JUPYTER_CONFIG_PATH="$ROOT/$JUPYTER${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
        exec "$PYTHON" -m jupyterlab --ServerApp.ip=127.0.0.1 "${@:2}"
        ;;
    test)
        course_python && need pytest && need xdist pytest-xdist
        [ $# -gt 1 ] || exec "$PYTHON" -m tests
        [ "${CI:-}" != true ] || "$PYTHON" -m tests.ci || exit # installs what only tests need
        exec "$PYTHON" -m pytest "${@:2}"
        ;;
    execute)
        course_python && need nbclient && need ipykernel
        cd "$CALLED_FROM" && exec "$PYTHON" -P -m course_utils "$@" # its paths start there
        ;;
    grade)
        course_python "$@" && need psutil
        cd "$CALLED_FROM" && exec "$PYTHON" -P -m course_utils "$@" # its paths start there
        ;;
    site)
        any_python && need sphinx "-r $ROOT/requirements-site.txt"
        exec "$PYTHON" -m website "${@:2}"
        ;;
    bench) course_python "$@" && need psutil ;;
    demo) course_python "$@" && need psutil "psutil rich numpy" && need rich && need numpy ;;
    setup) course_python "$@" ;;
    *) any_python ;;
esac
exec "$PYTHON" -m course_utils "$@"
