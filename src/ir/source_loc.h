// The line of the user's program that made an op. Python installs a provider that walks its stack; C++ programs may
// leave it alone. The location is plain data: it is kept with the op and written into error messages.
#pragma once
#include <string>
#include <vector>

namespace anabranch {

struct SourceLoc {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;                // the source line, trimmed; may be empty
  std::vector<std::string> stack;  // Fluid's op_callstack attribute: pairs of lines, outermost first

  bool known() const { return !file.empty(); }
  std::string str() const;  // "train.py:41 in mlp(): h = fluid.layers.fc(x, 10)"
};

// Called on every append_op; null: no locations. Set once, by the binding layer.
using SourceLocProvider = SourceLoc (*)();
void set_source_loc_provider(SourceLocProvider provider);
SourceLoc current_source_loc();

}  // namespace anabranch
