#!/usr/bin/env bash
# One door to the course: makes the Python environment at need, then starts what is asked for.
# `./run.sh help` lists the commands. Works with bash 3.2, the one that comes with macOS.
set -u

VENV=.venv
STAMP=$VENV/course-stamp # says for which checkout and which requirements .venv is complete
SCRATCH=.venv.tmp        # where pip unpacks, on the disk whose room was checked: /tmp may be small
LOCK=.venv.lock          # a symlink to the id of the process that is making .venv
CALLED_FROM=$PWD

say() { printf '%s\n' "$*" >&2; }

die() { # die STATUS WORD...
    say "run.sh: ${*:2}"
    exit "$1"
}

checkout() { # prints the folder of this script, also when it was called through a symlink
    local file=${BASH_SOURCE[0]} folder
    while [ -L "$file" ]; do
        folder=$(dirname -- "$file")
        file=$(readlink -- "$file")
        case $file in /*) ;; *) file=$folder/$file ;; esac
    done
    cd -P -- "$(dirname -- "$file")" && pwd
}

# --- Which Python: each of these sets PYTHON --------------------------------------------------

version_of() { # prints 3.11.7, or nothing when it does not run
    "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python_on_path() { # plain python3 comes first: it is the one the user knows
    local name version seen=
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        PYTHON=$(command -v "$name") || continue
        is_new_enough "$PYTHON" && return
        version=$(version_of "$PYTHON")
        [ -n "$version" ] && [ -z "$seen" ] && seen="only $version ($PYTHON)"
    done
    die 2 "the course needs Python 3.11 or newer and found ${seen:-none} on PATH:" \
        "install one, or name it in COURSE_PYTHON."
}

prefer_checkout() { export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"; }

holds() { # holds PYTHON MODULE...: are they installed there? Looks, and imports none of them
    (cd / && "$1" -P -c 'import sys; from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "${@:2}" 2>/dev/null)
}

chosen_python() { # the one COURSE_PYTHON names; false when it names none
    local version
    [ -n "${COURSE_PYTHON:-}" ] || return
    case $COURSE_PYTHON in
        /*) PYTHON=$COURSE_PYTHON ;;
        */*) PYTHON=$CALLED_FROM/$COURSE_PYTHON ;;
        *) PYTHON=$(command -v "$COURSE_PYTHON") ;;
    esac
    version=$(version_of "$PYTHON")
    [ -n "$version" ] || die 2 "COURSE_PYTHON=$COURSE_PYTHON does not run: name a Python there is."
    is_new_enough "$PYTHON" ||
        die 2 "COURSE_PYTHON=$COURSE_PYTHON is Python $version: name one of 3.11 or newer."
    prefer_checkout # the course need not be installed there
}

active_python() { # the one of an active environment that holds the course; false without one
    local folder
    for folder in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
        PYTHON=$folder/bin/python
        # Our own .venv is left to its stamp, which knows whether it is complete.
        [ -n "$folder" ] && ! [ "$folder" -ef "$VENV" ] && [ -x "$PYTHON" ] &&
            holds "$PYTHON" torch course_utils && prefer_checkout && return # not another's course
    done
    return 1
}

any_python() { # for commands that need no torch: nothing is installed for them
    chosen_python || active_python || {
        PYTHON=$ROOT/$VENV/bin/python
        is_new_enough "$PYTHON" || python_on_path
    }
}

course_python() { # for commands that need the whole environment: it is made at need
    if chosen_python; then
        holds "$PYTHON" torch ||
            die 2 "COURSE_PYTHON=$COURSE_PYTHON has no torch: install torch and torchvision" \
                "there, or unset COURSE_PYTHON to let run.sh make an environment."
    else
        active_python || own_python
    fi
}

need_module() { # need_module NAME [PACKAGE]: an environment of the user's own may lack it
    holds "$PYTHON" "$1" || die 2 "$PYTHON has no ${2:-$1}: install it there (pip install ${2:-$1})."
}

# --- What only tests need of the system -----------------------------------------------------------

install_system_packages() { # Debian's packages whose programs are missing
    local missing=()
    command -v ip >/dev/null && command -v tc >/dev/null || missing+=(iproute2)
    command -v chromium >/dev/null || missing+=(chromium fonts-wqy-microhei) # for terms in Chinese
    [ ${#missing[@]} -gt 0 ] || return 0
    { command -v apt-get && [ "$(id -u)" = 0 ]; } >/dev/null ||
        die 2 "cannot install ${missing[*]}: that takes Debian or Ubuntu, and root. Without them" \
            "run the tests without CI=true: what needs them is skipped."
    say "Installing ${missing[*]}..."
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq install --no-install-recommends -y "${missing[@]}"; } \
        >/dev/null || die 1 "apt-get could not install ${missing[*]}: see what it said above."
}

install_deepspeed() { # optional, and so not in requirements.txt; cells of notebook 05 run with it
    holds "$PYTHON" deepspeed && return
    say "Installing requirements-deepspeed.txt..."
    # Without isolation: its setup.py wants the torch that is here, and not one of its own.
    "$PYTHON" -m pip install -q --no-build-isolation -r requirements-deepspeed.txt >&2 ||
        die 1 "pip could not install requirements-deepspeed.txt: see what it said above."
}

# --- The environment of our own, .venv ----------------------------------------------------------

stamp() {
    printf '%s\n' "$ROOT"
    cat requirements.txt pyproject.toml | cksum
}

is_complete() { [ -x "$PYTHON" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$(stamp)" ]; }

own_python() {
    PYTHON=$ROOT/$VENV/bin/python
    is_complete && return
    take_lock
    is_complete || install # another run.sh may have made it while this one waited
    rm -f "$LOCK"
}

take_lock() {
    local owner waited='' refused=0
    until ln -sn $$ "$LOCK" 2>/dev/null; do
        owner=$(readlink "$LOCK") || refused=$((refused + 1))
        [ "$refused" -lt 3 ] ||
            die 2 "cannot write in $ROOT, so no environment can be made there: copy the course to" \
                "a folder of yours, or name a Python that has torch in COURSE_PYTHON."
        if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
            [ "$(readlink "$LOCK")" = "$owner" ] && rm -f "$LOCK" # its process was killed
            continue
        fi
        [ -n "$owner" ] && [ -z "$waited" ] && waited=yes &&
            say "Waiting for the run.sh that is making $VENV (process $owner; if there is none," \
                "remove $ROOT/$LOCK)..."
        sleep 0.2
    done
}

install() { # makes or updates .venv; whatever ends it, nothing half-made stays
    CHILD='' MAKING='' LEFT='nothing half-made is left'
    LOG=$(mktemp "${TMPDIR:-/tmp}/course-setup.XXXXXX") ||
        die 1 "cannot write in ${TMPDIR:-/tmp}: make room there, or set TMPDIR to another folder."
    trap tidy EXIT
    mkdir -p "$SCRATCH"
    trap 'interrupted 129' HUP
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM
    if ! was_moved && is_new_enough "$PYTHON" && holds "$PYTHON" pip; then
        say "Updating $VENV to requirements.txt..."
        LEFT="the next call completes $VENV"
        rm -f "$STAMP"
    else
        make_venv
    fi
    pip_install -r requirements.txt
    pip_install --no-deps --no-build-isolation -e . # setuptools is there: needs no network
    stamp >"$STAMP" || die 1 "cannot write $ROOT/$STAMP: make room on the disk, and try again."
    trap - EXIT HUP INT TERM
    rm -rf "$SCRATCH" "$LOG"
    say "$VENV is ready."
}

was_moved() { [ -e "$STAMP" ] && [ "$(head -n 1 "$STAMP")" != "$ROOT" ]; }

make_venv() {
    local gib=6
    [ "$(uname)" = Darwin ] && gib=2 # no CUDA libraries there
    MAKING=yes
    [ -e "$VENV" ] && say "Removing $VENV: it is incomplete, or was made in another folder."
    rm -rf "$VENV"
    python_on_path # after that, for it may have been the one of .venv
    need_disk $((gib * 3 / 2)) # while wheels and what is in them are both there
    say "Making $VENV with Python $(version_of "$PYTHON") and installing requirements.txt (about" \
        "$gib GB, a few minutes the first time)..."
    run "$PYTHON" -m venv "$VENV" ||
        die 1 "$PYTHON cannot make a virtual environment: install its venv module (on Debian and" \
            "Ubuntu the package python3-venv), or put another Python on PATH; the log is $LOG."
    PYTHON=$ROOT/$VENV/bin/python
}

need_disk() { # need_disk GIB
    local free
    free=$(df -Pk . 2>/dev/null | awk 'END { if ($4 ~ /^[0-9]+$/) print int($4 / 1048576) }')
    [ "${free:-$1}" -ge "$1" ] ||
        die 1 "the setup needs about $1 GB and $ROOT has $free GB free: make room, or move the" \
            "course to a larger disk."
}

run() { # run COMMAND...: into the log, in a process group of its own that can be ended as a whole
    set -m
    TMPDIR=$ROOT/$SCRATCH "$@" >>"$LOG" 2>&1 </dev/null &
    CHILD=$!
    set +m
    wait "$CHILD" 2>/dev/null
    local status=$?
    CHILD=''
    return $status
}

pip_install() {
    run "$PYTHON" -m pip install --disable-pip-version-check --progress-bar off "$@" ||
        die 1 "$(why_pip_failed); $LEFT, and pip's log is $LOG."
}

why_pip_failed() {
    local unreachable='connection broken by|Max retries exceeded|ConnectTimeout|ReadTimeout'
    unreachable+='|Failed to establish a new connection|ProxyError|SSLError|name resolution'
    if grep -q 'No space left on device' "$LOG"; then
        printf 'the disk of %s filled up: make room there and try again' "$ROOT"
    elif grep -qE "$unreachable" "$LOG"; then
        printf '%s' "the package registry is out of reach: check the network and pip's settings" \
            " (pip config list), and try again"
    else
        printf 'pip failed (%s): mend that and try again' "$(tail -n 1 "$LOG")"
    fi
}

interrupted() { # interrupted STATUS
    trap '' HUP INT TERM
    stop_child
    rm -f "$LOG"
    die "$1" "the setup was interrupted: $LEFT; the same command takes it up again."
}

tidy() { # of what was made only the log of a failure stays
    rm -rf "$SCRATCH"
    [ -s "$LOG" ] || rm -f "$LOG"
    [ -z "$MAKING" ] || rm -rf "$VENV"
    rm -f "$LOCK"
}

stop_child() { # and all it started, or that would go on writing into .venv
    [ -n "$CHILD" ] || return
    kill -KILL -- "-$CHILD" 2>/dev/null
    wait "$CHILD" 2>/dev/null
    sleep 0.1 # its children end a moment after it
}

# --- The commands -------------------------------------------------------------------------------

unset CDPATH
ROOT=$(checkout) || die 1 "cannot find the folder of the course."
cd "$ROOT" || die 1 "cannot enter $ROOT."

[ $# -gt 0 ] || set -- demo transformer
[ "$1" != help ] || set -- --help
case $1 in
    setup)
        [ $# -eq 1 ] || die 2 "setup takes no arguments: leave out '$2'."
        course_python
        say "The course uses $PYTHON."
        exit
        ;;
    lab)
        course_python
        need_module jupyterlab
        exec "$PYTHON" -m jupyterlab --ServerApp.ip=127.0.0.1 --notebook-dir=notebooks "${@:2}"
        ;;
    test)
        course_python
        need_module pytest
        shift
        [ "${CI:-}" != true ] || { install_system_packages && install_deepspeed; }
        [ $# -eq 0 ] || exec "$PYTHON" -m pytest "$@"
        need_module xdist pytest-xdist
        exec "$PYTHON" -m tests
        ;;
    execute)
        course_python && need_module nbclient && need_module ipykernel
        cd "$CALLED_FROM" && exec "$PYTHON" -P -m course_utils "$@" # its paths are from there
        ;;
    bench) course_python && need_module psutil ;;
    demo) course_python ;;
    *) any_python ;;
esac
exec "$PYTHON" -m course_utils "$@"
