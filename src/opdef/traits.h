// Properties of an op that passes and the engine may use without knowing the op. Effects are declared so that the
// executor can order nodes; traits let a pass query a property where it would otherwise list the names of ops.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/op.h"

namespace anabranch {

// Effects of a node besides reading inputs and writing outputs.
enum Effect : unsigned {
  kRandom = 1u << 0,      // draws random numbers
  kDynamic = 1u << 1,     // output shapes depend on input values: inferred right before the kernel runs
  kOrdered = 1u << 2,     // keeps program order with all other ordered ops (print, file, reader)
  kRunsBlock = 1u << 4,   // executes a sub-block: reads and writes what the block does
  kMaybeUnset = 1u << 5,  // inputs may hold nothing (the branch that did not run)
  // created by passes and the engine, which guarantee its arguments; no program may contain it
  kEngineOnly = 1u << 6,
  kKeepsOutputs = 1u << 7,  // an output that the op does not write in a run keeps its value
  kRepeats = 1u << 9,       // its sub-block may run many times in a step
  kAsynchronous = 1u << 8,  // its kernel may return before the node has ended (completion.h)
};

enum Trait : unsigned {
  kRowWise = 1u << 0,         // Out has a row for each row of the inputs with unknown rows
  kElementwise = 1u << 1,     // Out has X's shape, each element computed from the same element of X
  kLinear = 1u << 2,          // a factor on the gradient of Out is a factor on the gradients of the inputs
  kMean = 1u << 3,            // Out is the mean of elements of X
  kView = 1u << 4,            // Out has the elements of X in their order, in a shape that attributes give
  kLooksUp = 1u << 5,         // reads or writes only the rows of a table that Ids names
  kBfloat16 = 1u << 6,        // obeys the attribute `bfloat16`: float32 operands are rounded before they are multiplied
  kWholeParameter = 1u << 7,  // an update that reads the whole parameter: rows cannot be updated one by one
  kConstant = 1u << 8,        // Out is filled with the number of the attributes `value` and `str_value`
  kServed = 1u << 9,          // the caller of a run serves Out: the op is skipped if it is a reader, or fed
  kSameForms = 1u << 11,      // persistent outputs keep their shape and dtype
  kSends = 1u << 12,          // sends a worker's results to servers; the ops below identify the worker
  kEndsStep = 1u << 13,       // the last of these in a step of the worker of attribute trainer_id
  kReceives = 1u << 14,       // fetches values from servers for that worker
  kKeepsElements = 1u << 15,  // of two arguments that may share memory one has the other's elements in order
  kForAllReplicas = 1u << 16,   // one node serves the replicas of a process: its lists have the arguments of each
  kReadsTableShape = 1u << 17,  // of a table W only the shape is read, so it may be on servers
  kSkipsUnset = 1u << 18,       // an input that is also an output may have no value yet (Meta::unset) and is skipped
  kOnlyComputes = 1u << 10,     // only computes outputs from inputs, for any family and effects
};

// Images of an op that keep one layout of oneDNN, which the attribute sets. Ops with a tile treat every element alike,
// for any layout, and declare none.
struct ImageGroup {
  std::vector<std::string> slots;
  std::string attr;
};

// How copies of persistent state from several training threads are combined.
enum class StateMerge {
  kUnsaid,  // parameters and counts are summed, other numbers are averaged
  kSum,     // the sum of the changes
  kFirst,   // the first thread's
};

// Depends on an op's attributes and on which arguments are present.
template <class Result> using OfOp = std::function<Result(const ir::Op&)>;

}  // namespace anabranch
