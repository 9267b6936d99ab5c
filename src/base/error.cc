#include "base/error.h"

#include <fmt/format.h>

namespace anabranch {

const char* error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return "InvalidArgument";
    case ErrorKind::kShapeMismatch: return "ShapeMismatch";
    case ErrorKind::kNotFound: return "NotFound";
    case ErrorKind::kUnsupported: return "Unsupported";
    case ErrorKind::kResourceExhausted: return "ResourceExhausted";
    case ErrorKind::kUnavailable: return "Unavailable";
    case ErrorKind::kInternal: return "Internal";
    case ErrorKind::kEndOfData: return "EndOfData";
  }
  return "Internal";
}

Error::Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) { compose(); }

Error& Error::in_op(const std::string& type) {
  if (!names_op_ && !message_.starts_with(type + ":")) message_ = type + ": " + message_;
  names_op_ = true;
  compose();
  return *this;
}

Error& Error::with_op(std::string op_line) {
  if (op_line_.empty()) op_line_ = std::move(op_line);
  compose();
  return *this;
}

Error& Error::with_while(std::string activity) {
  if (while_.empty()) while_ = std::move(activity);
  compose();
  return *this;
}

Error& Error::with_hint(std::string hint) {
  if (hint_.empty()) hint_ = std::move(hint);
  compose();
  return *this;
}

Error& Error::with_note(std::string note) {
  notes_ += "\n  " + note;
  compose();
  return *this;
}

void throw_error(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, fmt::vformat(format, args));
}

void Error::compose() {
  what_ = fmt::format("{}: {}", error_kind_name(kind_), message_);
  if (!op_line_.empty()) what_ += "\n  op     " + op_line_;
  if (!while_.empty()) what_ += "\n  while  " + while_;
  if (!hint_.empty()) what_ += "\n  hint   " + hint_;
  what_ += notes_;
  for (size_t at = 0; (at = what_.find('\0', at)) != std::string::npos;) what_.replace(at, 1, "\\x00");  // not its end
}

}  // namespace anabranch
