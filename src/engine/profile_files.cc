#include "engine/profile_files.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "device/devices.h"
#include "exec/device_times.h"

namespace anabranch {
namespace {

const char* name_of(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::kRun: return "run";
    case TraceEvent::kFeed: return "feed";
    case TraceEvent::kShapes: return "infer_shape";
    case TraceEvent::kFetch: return "fetch";
    default: return "op";
  }
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Viewers show queues of devices as threads, after those of the process.
int thread_id(int track) { return track < 0 ? 1'000'000 - 1 - track : track; }

// Details of the selected event in a viewer.
std::string details(const ProfiledNode& node, const TraceEvent& e) {
  std::string args = fmt::format("\"op\":{},\"replica\":{}", quoted(node.place), node.replica);
  if (e.iteration >= 0) args += fmt::format(",\"iteration\":{}", e.iteration);
  const auto ns = static_cast<double>(e.end_ns - e.begin_ns);
  if (ns > 0) {
    if (node.work.flops > 0) args += fmt::format(",\"GFLOP/s\":{:.4g}", node.work.flops / ns);
    if (node.work.bytes > 0) args += fmt::format(",\"GB/s\":{:.4g}", node.work.bytes / ns);
  }
  return args;
}

// ---- protobuf: a field is (number * 8 + wire type) and a varint, or a length and bytes

void put_varint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>((value & 0x7f) | 0x80);
  *out += static_cast<char>(value);
}

void put_number(std::string* out, int field, int64_t value) {
  put_varint(out, static_cast<uint64_t>(field) * 8);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_bytes(std::string* out, int field, std::string_view bytes) {
  put_varint(out, static_cast<uint64_t>(field) * 8 + 2);
  put_varint(out, bytes.size());
  *out += bytes;
}

}  // namespace

std::string chrome_trace(const Profile& profile) {
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  out += R"({"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"anabranch"}})";
  std::set<int> tracks;
  for (const ProfiledEvent& e : profile.events) tracks.insert(e.event.track);
  for (int track : tracks) {
    out += fmt::format(",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":{},\"args\":{{\"name\":\"{}\"}}}}",
                       thread_id(track), track < 0 ? name_of_queue(-1 - track) : fmt::format("thread {}", track));
  }
  for (const auto& [plan, e] : profile.events) {
    const ProfiledNode* node = e.node >= 0 ? &profile.plans[plan].nodes[e.node] : nullptr;
    const std::string name = !node                          ? name_of(e.kind)
                             : e.kind == TraceEvent::kChunk ? node->type + " (help)"
                                                            : node->type;
    out += fmt::format(
        ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
        "\"args\":{{{}}}}}",
        quoted(name),
        e.track < 0 ? "device"
        : node      ? "op"
                    : "engine",
        thread_id(e.track), static_cast<double>(e.begin_ns - profile.begin_ns) / 1e3,
        static_cast<double>(e.end_ns - e.begin_ns) / 1e3,
        node && (e.kind == TraceEvent::kNode || e.kind == TraceEvent::kDevice) ? details(*node, e) : "");
  }
  return out + "\n]}\n";
}

std::string fluid_profile(const Profile& profile) {
  constexpr int kName = 1, kStart = 2, kEnd = 3, kDevice = 5, kSubDevice = 6, kType = 8;  // of an Event
  constexpr int kOnGpu = 1;
  const int64_t offset = profile.wall_clock_offset_ns;
  std::string out;
  for (const auto& [plan, e] : profile.events) {
    if (e.kind == TraceEvent::kChunk) continue;
    std::string event;
    put_bytes(&event, kName, e.node >= 0 ? profile.plans[plan].nodes[e.node].type : name_of(e.kind));
    put_number(&event, kStart, e.begin_ns + offset);
    put_number(&event, kEnd, e.end_ns + offset);
    const int queue = -1 - e.track;
    put_number(&event, kDevice, e.track < 0 ? queue / device::kQueueKinds : e.track);
    put_number(&event, kSubDevice, e.track < 0 ? queue % device::kQueueKinds : 0);
    put_number(&event, kType, e.track < 0 ? kOnGpu : 0);
    put_bytes(&out, 1, event);
  }
  put_number(&out, 2, profile.begin_ns + offset);
  put_number(&out, 3, profile.end_ns + offset);
  return out;
}

}  // namespace anabranch
