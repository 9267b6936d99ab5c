// Typed errors. Every failure that a user can cause is an Error with a kind, one line of text, and, where an op was
// involved, the op and the user's source line. Errors are values: throwing one takes no lock and writes no log.
#pragma once
#include <fmt/core.h>

#include <exception>
#include <string>
#include <utility>

namespace anabranch {

enum class ErrorKind {
  kInvalidArgument,
  kShapeMismatch,
  kNotFound,
  kUnsupported,
  kResourceExhausted,
  kUnavailable,
  kInternal,
  kEndOfData,
};

const char* error_kind_name(ErrorKind kind);  // "InvalidArgument", ...

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& op_line() const { return op_line_; }

  // Prefixes the text with "mul: ". The first op wins; a text that already starts with the name is unchanged.
  Error& in_op(const std::string& type);
  // Each adds one line to what(). The first op and the first activity win because they are closest to the fault.
  Error& with_op(std::string op_line);      // "#12 mul -> fc_0.tmp_0 (forward, block 0)  made at train.py:41 ..."
  Error& with_while(std::string activity);  // "inferring shapes"
  Error& with_hint(std::string hint);       // "Y.shape[0] must be 784"
  Error& with_note(std::string note);       // further lines, in order

  const char* what() const noexcept override { return what_.c_str(); }
  const std::string& text() const { return what_; }  // the whole text, even if a quoted name contains a zero byte

 private:
  void compose();

  ErrorKind kind_;
  bool names_op_ = false;
  std::string message_, op_line_, while_, hint_, notes_, what_;
};

// Throws the formatted Error. One cold function for all sites, so that each costs its caller little code.
[[noreturn, gnu::cold, gnu::noinline]] void throw_error(ErrorKind kind, fmt::string_view format, fmt::format_args args);

// Always inline: numbers are copied where they are formatted, so that taking their address keeps none out of a
// register.
template <class... Args>
[[noreturn, gnu::always_inline]] inline void throw_formatted(ErrorKind kind, fmt::format_string<Args...> format,
                                                             Args&&... args) {
  throw_error(kind, format, fmt::make_format_args(args...));
}

#define AB_THROW(kind, ...) ::anabranch::throw_formatted(::anabranch::ErrorKind::k##kind, __VA_ARGS__)

// Also active in release builds: most of these checks guard memory.
#define AB_CHECK(condition, kind, ...) \
  do {                                 \
    if (!(condition)) [[unlikely]] {   \
      AB_THROW(kind, __VA_ARGS__);     \
    }                                  \
  } while (0)

}  // namespace anabranch
