#include "ir/attr.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

namespace anabranch {
namespace {

template <class T> struct IsList : std::false_type {};
template <class T> struct IsList<std::vector<T>> : std::true_type {};

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string item_str(int32_t v) { return std::to_string(v); }
std::string item_str(int64_t v) { return std::to_string(v); }
std::string item_str(float v) { return fmt::format("{}", v); }
std::string item_str(bool v) { return v ? "true" : "false"; }
std::string item_str(const std::string& v) { return quoted(v); }
std::string item_str(const BlockRef& v) { return fmt::format("block {}", v.idx); }

// Number to number; false if the value would change.
template <class To, class From> bool convert_item(const From& from, To* to) {
  if constexpr (std::is_same_v<To, From>) {
    *to = from;
    return true;
  } else if constexpr (std::is_arithmetic_v<To> && std::is_integral_v<From>) {
    if constexpr (std::is_same_v<To, float>) {
      // Beyond 2^24 not every whole number has a float; compare in double, which holds both.
      *to = static_cast<float>(from);
      return !std::is_same_v<From, bool> && std::fabs(static_cast<double>(from)) <= 9007199254740992.0 &&
             static_cast<double>(*to) == static_cast<double>(from);
    } else {
      *to = static_cast<To>(from);
      return static_cast<int64_t>(*to) == static_cast<int64_t>(from);
    }
  } else {
    return false;
  }
}

template <class To, class From> bool convert_value(const From& from, To* to) {
  if constexpr (IsList<To>::value && IsList<From>::value) {
    to->clear();
    for (const auto& x : from) {
      // The item types are spelled out: vector<bool> returns proxies.
      typename To::value_type item{};
      if (!convert_item(static_cast<const typename From::value_type&>(x), &item)) return false;
      to->push_back(item);
    }
    return true;
  } else if constexpr (!IsList<To>::value && !IsList<From>::value) {
    return convert_item(from, to);
  } else {
    return false;
  }
}

template <size_t I = 0> Attr empty_attr(size_t index) {
  if constexpr (I < std::variant_size_v<Attr>) {
    return index == I ? Attr(std::in_place_index<I>) : empty_attr<I + 1>(index);
  } else {
    AB_THROW(InvalidArgument, "{} is not an attribute type", index);
  }
}

}  // namespace

const char* attr_type_name(AttrType type) {
  static const char* const names[] = {"INT",     "FLOAT",    "STRING", "INTS", "FLOATS", "STRINGS",
                                      "BOOLEAN", "BOOLEANS", "BLOCK",  "LONG", "BLOCKS", "LONGS"};
  const auto i = static_cast<size_t>(type);
  return i < std::size(names) ? names[i] : "UNKNOWN";
}

std::string attr_str(const Attr& attr) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (IsList<T>::value) {
          std::string out = "[";
          for (size_t i = 0; i < v.size(); ++i) {
            if (i) out += ", ";
            out += item_str(static_cast<const typename T::value_type&>(v[i]));
          }
          return out + "]";
        } else {
          return item_str(v);
        }
      },
      attr);
}

Attr convert_attr(const std::string& name, const Attr& attr, AttrType type) {
  if (attr_type(attr) == type) return attr;
  Attr out = empty_attr(static_cast<size_t>(type));
  const bool fits = std::visit([](const auto& from, auto& to) { return convert_value(from, &to); }, attr, out);
  AB_CHECK(fits, InvalidArgument, "attribute {} must be {}, got {} {}", name, attr_type_name(type),
           attr_type_name(attr_type(attr)), attr_str(attr));
  return out;
}

template <class T> const T& attr_as(std::string_view name, const Attr& attr) {
  const T* p = std::get_if<T>(&attr);
  AB_CHECK(p != nullptr, InvalidArgument, "attribute {} must be of type {}, got {}", name,
           attr_type_name(attr_type(Attr(T()))), attr_type_name(attr_type(attr)));
  return *p;
}
#define AB_INSTANTIATE(T) template const T& attr_as<T>(std::string_view name, const Attr& attr)
AB_EACH_ATTR_TYPE(AB_INSTANTIATE);
#undef AB_INSTANTIATE

}  // namespace anabranch
