// Attribute values of ops. The alternatives stand in the order of Fluid's AttrType numbers, which are in saved models.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace anabranch {

struct BlockRef {  // a sub-block, by its index in the program
  int32_t idx = -1;
  bool operator==(const BlockRef&) const = default;
};

enum class AttrType : int32_t {
  kInt = 0,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kBoolean,
  kBooleans,
  kBlock,
  kLong,
  kBlocks,
  kLongs
};

using Attr =
    std::variant<int32_t, float, std::string, std::vector<int32_t>, std::vector<float>, std::vector<std::string>, bool,
                 std::vector<bool>, BlockRef, int64_t, std::vector<BlockRef>, std::vector<int64_t>>;

// apply(T) for each alternative: functions that are declared for all of them and compiled once.
#define AB_EACH_ATTR_TYPE(apply)             \
  apply(int32_t);                            \
  apply(float);                              \
  apply(std::string);                        \
  apply(std::vector<int32_t>);               \
  apply(std::vector<float>);                 \
  apply(std::vector<std::string>);           \
  apply(bool);                               \
  apply(std::vector<bool>);                  \
  apply(::anabranch::BlockRef);              \
  apply(int64_t);                            \
  apply(std::vector<::anabranch::BlockRef>); \
  apply(std::vector<int64_t>)

using AttrMap = std::map<std::string, Attr, std::less<>>;  // sorted: attributes are written to files in this order

inline AttrType attr_type(const Attr& attr) { return static_cast<AttrType>(attr.index()); }
const char* attr_type_name(AttrType type);  // "INT", "FLOATS", ...
std::string attr_str(const Attr& attr);

// The attribute as `type` if no information is lost (an int for a long, an empty list for any list, an int for a float
// ...); otherwise InvalidArgument. `name` is for the message.
Attr convert_attr(const std::string& name, const Attr& attr, AttrType type);

// The attribute as a T, one of the alternatives above; InvalidArgument when it is another.
template <class T> const T& attr_as(std::string_view name, const Attr& attr);

}  // namespace anabranch
