// Names that were probably meant, for messages about unknown ones.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace anabranch {

// "; did you mean price?" if one of the names differs in at most a third of its letters (the first of the most similar
// ones), else "".
std::string near_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace anabranch
