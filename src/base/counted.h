// Numbers with their nouns, for texts that people read: "1 change", "2 changes", "1 copy", "2 copies".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace anabranch {

// The number, and the noun in the singular or plural. plural: of a noun that does more than take an s.
std::string counted(int64_t number, std::string_view noun, std::string_view plural = {});

}  // namespace anabranch
