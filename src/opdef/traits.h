// What passes and the engine may know of an op without knowing the op. Effects are declared so that the executor can
// order nodes; traits let a pass ask for a property where it would otherwise list the names of ops.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/op.h"

namespace anabranch {

// What a node does besides reading inputs and writing outputs.
enum Effect : unsigned {
  kNoEffect = 0,
  kRandom = 1u << 0,          // draws random numbers
  kDynamic = 1u << 1,         // output shapes depend on input values: inferred right before the kernel runs
  kOrdered = 1u << 2,         // keeps program order with all other ordered ops (print, file, reader)
  kTakesViews = 1u << 3,      // kernel accepts row-strided tensors
  kRunsBlock = 1u << 4,       // executes a sub-block: reads and writes what the block does
  kMaybeUnset = 1u << 5,      // inputs may hold nothing (the branch that did not run)
  kEngineOnly = 1u << 6,      // made by passes and the engine, which vouch for its arguments; no program may hold it
  kKeepsOutputs = 1u << 7,    // an output that the op does not write in a run keeps what it held
  kRepeats = 1u << 9,         // its sub-block may run many times in a step
  kCompletesLater = 1u << 8,  // its kernel may return before the node has ended (completion.h)
};

enum Trait : unsigned {
  kRowWise = 1u << 0,         // Out has a row for each row of the inputs of which the rows are unknown
  kElementwise = 1u << 1,     // Out has X's shape, each element made of the element of X at its place
  kLinear = 1u << 2,          // a factor on the gradient of Out is a factor on the gradients of the inputs
  kMean = 1u << 3,            // Out is the mean of elements of X
  kView = 1u << 4,            // Out has the elements of X in their order, in a shape that attributes give
  kLooksUp = 1u << 5,         // reads or writes only those rows of a table that Ids names
  kBfloat16 = 1u << 6,        // obeys the attribute `bfloat16`: float32 operands are rounded before they are multiplied
  kWholeParameter = 1u << 7,  // an update that looks at the whole parameter: rows cannot be updated one by one
  kConstant = 1u << 8,        // Out is full of the number that the attributes `value` and `str_value` give
  kServed = 1u << 9,          // the caller of a run serves Out: nothing is left to do where it is a reader, or fed
  kSameForms = 1u << 11,      // outputs that persist keep the shape and the dtype that they have
  kSends = 1u << 12,          // gives servers what a trainer has computed; who that is, the ops below say
  kEndsStep = 1u << 13,       // the last of these in a step of the trainer of attribute trainer_id
  kReceives = 1u << 14,       // takes for that trainer what servers have
  kKeepsElements = 1u << 15,  // of two arguments that may share memory one has the other's elements in their order
  kOnlyComputes = 1u << 10,   // turns inputs into outputs and does nothing else, whatever its family and effects say
};

// Images of an op that keep one layout of the kernel library. With an attribute: the op is told by it. Without: it does
// the same to every element, wherever that lies.
struct ImageGroup {
  std::vector<std::string> slots;
  std::string attr;
};

// What becomes of persistable state when several trainers have worked on copies of it.
enum class StateMerge {
  kUnsaid,  // parameters and counts add up, other numbers are averaged
  kSum,     // what each trainer added
  kFirst,   // the first trainer's
};

// Asked of an op's attributes and of which arguments are given.
template <class Result> using OfOp = std::function<Result(const ir::Op&)>;

}  // namespace anabranch
