"""Cases of operators that tests/ops leaves out: SEEDS, operator -> cases."""

import programs
import programs_blocks

SEEDS: dict = {}
for made in programs.MADE + programs_blocks.MADE:
    for case in made():
        SEEDS.setdefault(case["op"], []).append(case)
