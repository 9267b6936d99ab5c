"""Explanations on RESULTS.md: of the columns of its tables, of cases, of ceilings."""

#: The meaning of the columns of the tables.
COLUMNS = """## How to read the tables

- *Row* and *case*: [Rows](README.md#rows) explains the rows, such as W1. A row has one or more cases, such as
  different batch sizes. If several configurations of Anabranch are compared, the case ends with one of them, in
  brackets.
- *Engine* or *rival*: the name of the engine and its configuration. The page shows the fastest configuration of each
  rival. [Configurations](README.md#configurations) explains their names, such as `exe cache omp2`.
- *Value*: the median of the rounds. A round measures all engines for a short time, one after another.
- *Ratio*: the speed of Anabranch divided by the speed of the rival (for times and memory, the rival's value divided
  by Anabranch's), so that Anabranch is better if the ratio is above 1. It is the median of the ratios of the rounds,
  which can differ slightly from the ratio of the two values. The range in parentheses is its 95 % interval. Fewer
  than three rounds give *no interval*.
- *CPU time ratio*: the rival's CPU time per unit of work, such as a sample, divided by Anabranch's.
- *Share of ceiling*: the rate as a percentage of the most that the machine can do. Either float32 arithmetic or reads
  of random rows from memory limit the rate: the table names the one whose share is larger.
- *Memory*: the peak memory of the process. In the row COST, the memory and the time that a process needs to import
  NumPy are subtracted.
- *Loss or quality*: what the engine computed. For example, `loss 2.3 -> 1.5 (step 50)` means that the loss was 2.3 at
  step 1 and 1.5 at step 50, the last step whose loss was recorded. The last step differs between engines, so two
  engines are compared at steps for which both recorded a loss. Programs that do not train report a number computed from
  their output instead. The cell is empty if the script reports neither. Some cells also contain a note, such as the
  time per operator, or the median and the 99th percentile (p50, p99) of the time of a call.
- *Rounds used*: the number of rounds that were used, out of those that were measured. Rounds that other programs on
  the machine disturbed are dropped. If fewer than five would be left, all rounds are used, and the ratio is marked
  *noisy*.
"""

#: The words in the cases of W14.
W14 = """In the row W14, `rule` is the optimizer, `rows` the number of rows in the table, and `keys` the distribution of the
keys that are looked up or updated."""

#: Ceiling -> what the calibration program does, unit.
CEILINGS = dict(fp32_fma=("multiply-adds of float32 numbers", "GF/s"), dram_triad=("the memory triad", "GB/s"),
                gather64_1e6=("reads of random 64-byte rows", "M rows/s"), hand_off=("hand-off between two threads", "us"))
