// Failures of device plug-ins: a status and one line. They are thrown inside the plug-in and returned at the C
// interface.
#pragma once
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <utility>

#include "device/plugin_api.h"

namespace anabranch::plugin {

class Failure : public std::exception {
 public:
  Failure(ab_status status, std::string text) : status_(status), text_(std::move(text)) {}
  ab_status status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ab_status status_;
  std::string text_;
};

template <class... Parts> std::string said(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <class... Parts> [[noreturn]] void fail(ab_status status, const Parts&... parts) {
  throw Failure(status, said(parts...));
}

template <class... Parts> void need(bool holds, const Parts&... parts) {
  if (!holds) fail(AB_INVALID_ARGUMENT, parts...);
}

inline std::string& last_text() {  // of this thread
  thread_local std::string text;
  return text;
}

// Cut to room - 1 characters.
inline void put_text(char* to, size_t room, const std::string& text) {
  if (!to || !room) return;
  const size_t length = std::min(room - 1, text.size());
  memcpy(to, text.data(), length);
  to[length] = '\0';
}

inline size_t last_error(char* text, size_t room) {
  put_text(text, room, last_text());
  return last_text().size();
}

template <class T> T& given(T* p, const char* what) {
  need(p != nullptr, what, " must not be null");
  return *p;
}

// Runs fn and returns a status. The text of an exception becomes this thread's last text.
template <class Fn> int told(Fn&& fn) {
  try {
    fn();
    return AB_OK;
  } catch (const Failure& e) {
    last_text() = e.what();
    return e.status();
  } catch (const std::bad_alloc&) {
    last_text() = "the host has no memory left";
    return AB_RESOURCE_EXHAUSTED;
  } catch (const std::exception& e) {
    last_text() = e.what();
    return AB_INTERNAL;
  }
}

}  // namespace anabranch::plugin
