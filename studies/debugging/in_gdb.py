# Runs inside gdb (`gdb -x in_gdb.py PROGRAM`): stops a program at given places and writes what gdb says there.
# Run it with `-iex 'set auto-load python-scripts off'`: a printer that follows what is not constructed yet may not end.
#
#   JOB        stops | steps | lines | watch | throw
#   PLACES     a file: for `stops` a number and an address, for others what to break at, one a line
#   SAID       where it goes: one JSON object a line, `at` and `text`
#   ARGUMENTS  of the program
#   STEPS      how often to step from each place
#   STOPS      how many stops are enough
#   ELSEWHERE  if set, memory is where the system puts it by chance
import json
import os
import re

import gdb

said = open(os.environ["SAID"], "w")


def note(at, text, **more):
    said.write(json.dumps({"at": at, "text": text, **more}) + "\n")
    said.flush()


def run(command):
    try:
        return gdb.execute(command, to_string=True)
    except gdb.error as error:
        return f"error: {error}"


def alive():
    return any(thread.is_valid() for thread in gdb.selected_inferior().threads())


def whole_stack():
    """All frames with arguments and locals, and how many frames stand for tail calls: gdb concludes those from the calls that a function ends in,
    and gives up where such a callee has several parts. They are left out."""
    tails, frame = set(), gdb.newest_frame()
    while frame is not None:
        if frame.type() == gdb.TAILCALL_FRAME:
            tails.add(frame.level())
        frame = frame.older()
    parts = re.split(r"^(?=#\d)", run("bt full"), flags=re.M)
    kept = [part for part in parts if part and int(re.match(r"#(\d+)", part)[1]) not in tails]
    return "".join(re.sub(r"^#\d+ +", "# ", part) for part in kept), len(tails)


def places():
    return [line.rstrip("\n") for line in open(os.environ["PLACES"])]


def start():
    for setting in ["pagination off", "confirm off", "width 0", "print elements 64", "print frame-arguments all",
                    "print entry-values both", "breakpoint pending off", "debuginfod enabled off",
                    "print thread-events off", "breakpoint always-inserted on", "print inferior-events off", "step-mode off"]:
        run("set " + setting)
    for signal in ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGURG", "SIGPIPE"]:
        run(f"handle {signal} nostop noprint pass")
    run("set args " + os.environ.get("ARGUMENTS", "") + " > " + os.environ["SAID"] + ".stdout 2> /dev/null")
    if os.environ.get("ELSEWHERE"):
        run("set disable-randomization off")
    run("starti")


def base():
    """Where a position-independent program was loaded: the first mapping of the program itself."""
    program = os.path.realpath(gdb.current_progspace().filename)
    with open(program, "rb") as file:
        if file.read(17)[16] == 2:  # ET_EXEC
            return 0
    for line in open(f"/proc/{gdb.selected_inferior().pid}/maps"):
        if line.split()[-1] == program:
            return int(line.split("-")[0], 16)
    raise SystemExit(f"{program} is not mapped")


def stops():
    """Once at each place that is reached, whatever order they come in: all frames with arguments and locals."""
    loaded = base()
    numbers = {}
    for line in places():
        at, address = line.split()
        stop = gdb.Breakpoint(f"*{loaded + int(address, 16):#x}")
        stop.silent = True
        numbers[loaded + int(address, 16)] = (int(at), stop)
    wanted = int(os.environ.get("STOPS", "300"))
    while wanted and alive():
        run("continue")
        if not alive():
            break
        pc = gdb.selected_frame().pc()
        found = numbers.pop(pc, None)
        if found is None:
            note(-1, f"stopped elsewhere: {run('bt')}")
            continue
        found[1].delete()
        text, tails = whole_stack()
        note(found[0], text, tails=tails)
        wanted -= 1


def steps():
    """From each function that is reached, a number of steps: where gdb says that it is."""
    waiting = {}
    for name in places():
        try:
            stop = gdb.Breakpoint(name, internal=True)
            stop.silent = True
            waiting[stop.number] = (name, stop)
        except gdb.error as error:
            note(name, f"error: {error}")
    hit = []
    gdb.events.stop.connect(lambda e: hit.extend(b.number for b in getattr(e, "breakpoints", [])))
    how = os.environ.get("HOW", "step")
    while waiting and alive():
        hit.clear()
        run("continue")
        if not alive():
            break
        found = [waiting.pop(number) for number in list(hit) if number in waiting]
        if not found:
            break
        for name, stop in found:
            stop.delete()
        walk = [run("frame")]
        for _, stop in waiting.values():
            stop.enabled = False
        for _ in range(int(os.environ.get("STEPS", "30"))):
            if alive():
                run(how)
            if alive():
                walk.append(run("frame"))
        for _, stop in waiting.values():
            stop.enabled = True
        note(" ".join(name for name, _ in found), "".join(walk))


def lines():
    """What gdb makes of a place by line: where it breaks, and the first stop there with its arguments."""
    waiting = {}
    for name in places():
        try:
            stop = gdb.Breakpoint(name, internal=True)
            stop.silent = True
            waiting[stop.number] = (name, stop)
        except gdb.error as error:
            note(name, f"error: {error}")
    hit = []
    gdb.events.stop.connect(lambda e: hit.extend(b.number for b in getattr(e, "breakpoints", [])))
    while waiting and alive():
        hit.clear()
        run("continue")
        if not alive():
            break
        found = [waiting.pop(number) for number in list(hit) if number in waiting]
        if not found:
            break
        text = run("frame") + run("info locals")
        for name, stop in found:
            note(name, text)
            stop.delete()
    for name, _ in waiting.values():
        note(name, "never reached")


def watch():
    """Each change of a variable: `FUNCTION EXPRESSION` a line."""
    for line in places():
        function, expression = line.split(" ", 1)
        stop = gdb.Breakpoint(function, internal=True)
        stop.silent = True
        run("continue")
        stop.delete()
        note(line, run(f"watch {expression}"))
        for _ in range(int(os.environ.get("STEPS", "20"))):
            if alive():
                note(line, run("continue") + (run("bt") if alive() else ""))
        if alive():
            run("delete")


def throw():
    """Each exception: where it is thrown and where it is caught."""
    run("catch throw")
    run("catch catch")
    for _ in range(int(os.environ.get("STEPS", "50"))):
        if alive():
            note("exception", run("continue") + (run("bt full") if alive() else ""))


start()
{"stops": stops, "steps": steps, "lines": lines, "watch": watch, "throw": throw}[os.environ["JOB"]]()
said.close()
if alive():
    run("kill")
gdb.execute("quit")
