// How functions of the plug-in fail: a status and one line. Failures are thrown inside and told at the C interface.
#pragma once
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <utility>

#include "device/plugin_api.h"

namespace anabranch::simdevice {

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

std::string& last_text();  // of this thread

// Runs fn; what it throws becomes a status and this thread's last text.
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

}  // namespace anabranch::simdevice
