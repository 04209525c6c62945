"""A JSON array of so many records, the same on every machine."""

import json
import random
import sys

chance = random.Random(5)
words = "amber basket copper dolphin ember falcon garnet harbor indigo".split()


def record():
    return {
        "name": chance.choice(words) + str(chance.randrange(300)),
        "n": chance.randrange(10000),
        "tags": [chance.choice(words) for _ in range(chance.randrange(1, 6))],
        "pos": {"x": chance.random(), "y": None, "z": [True, False]},
    }


json.dump([record() for _ in range(int(sys.argv[1]))], sys.stdout)
