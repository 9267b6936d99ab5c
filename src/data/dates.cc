#include "data/dates.h"

#include <algorithm>
#include <chrono>

namespace anabranch::data {
namespace {

constexpr int64_t kDaySeconds = 86400, kHourSeconds = 3600;
constexpr int64_t kHours = 24, kWeekdays = 7, kDays = 31, kMonths = 12;

struct Moment {
  std::chrono::sys_days day = {};
  int64_t hour = 0;
  bool has_day = false, has_hour = false;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes a number of `count` digits from the start of the text.
bool take(std::string_view* text, size_t count, int64_t* value) {
  if (text->size() < count || !std::all_of(text->begin(), text->begin() + static_cast<int64_t>(count), is_digit)) {
    return false;
  }
  *value = 0;
  for (const char c : text->substr(0, count)) *value = 10 * *value + (c - '0');
  text->remove_prefix(count);
  return true;
}

bool take(std::string_view* text, char c) {
  const bool found = text->starts_with(c);
  if (found) text->remove_prefix(1);
  return found;
}

bool set_day(int64_t year, int64_t month, int64_t day, Moment* out) {
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  out->day = date;
  out->has_day = date.ok();
  return out->has_day;
}

// "", "Z", "+09:00", "+0900" or "+09".
bool is_zone(std::string_view text) {
  if (text.empty() || text == "Z") return true;
  int64_t hours = 0, minutes = 0;
  if (!take(&text, '+') && !take(&text, '-')) return false;
  if (!take(&text, 2, &hours)) return false;
  take(&text, ':');
  return hours < kHours && (text.empty() || (take(&text, 2, &minutes) && minutes < 60 && text.empty()));
}

// "13:05", "13:05:59", "13:05:59.25", and a zone.
bool take_time(std::string_view text, Moment* out) {
  int64_t minute = 0, second = 0;
  if (!take(&text, 2, &out->hour) || !take(&text, ':') || !take(&text, 2, &minute)) return false;
  if (take(&text, ':')) {
    if (!take(&text, 2, &second)) return false;
    if (take(&text, '.')) {
      const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
      if (digits == 0) return false;
      text.remove_prefix(digits);
    }
  }
  out->has_hour = out->hour < kHours && minute < 60 && second <= 60;
  return out->has_hour && is_zone(text);
}

// All digits: a date, or a time since 1970.
bool read_number(std::string_view text, size_t digits, Moment* out) {
  int64_t year = 0, month = 0, day = 0, count = 0;
  if (digits == 8 && digits == text.size()) {
    return take(&text, 4, &year) && take(&text, 2, &month) && take(&text, 2, &day) && set_day(year, month, day, out);
  }
  int64_t unit = 0;
  if (digits >= 9 && digits <= 11) unit = 1;
  if (digits == 12 || digits == 13) unit = 1'000;
  if (digits == 15 || digits == 16) unit = 1'000'000;
  if (digits == 18 || (digits == 19 && text < "9223372036854775807")) unit = 1'000'000'000;
  if (unit == 0 || !take(&text, digits, &count)) return false;
  if (unit == 1 && take(&text, '.')) text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  if (!text.empty()) return false;
  const int64_t seconds = count / unit;
  out->day = std::chrono::sys_days(std::chrono::days(seconds / kDaySeconds));
  out->hour = seconds % kDaySeconds / kHourSeconds;
  out->has_day = out->has_hour = true;
  return true;
}

bool read_moment(std::string_view text, Moment* out) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 2) return take_time(text, out);
  if (digits != 4) return read_number(text, digits, out);
  int64_t year = 0, month = 0, day = 0;
  take(&text, 4, &year);
  const char separator = text.empty() ? '\0' : text[0];
  if (separator != '-' && separator != '/') return false;
  if (!take(&text, separator) || !take(&text, 2, &month) || !take(&text, separator) || !take(&text, 2, &day) ||
      !set_day(year, month, day, out)) {
    return false;
  }
  return text.empty() || ((take(&text, 'T') || take(&text, ' ')) && take_time(text, out));
}

int64_t weekday(const Moment& moment) { return std::chrono::weekday(moment.day).iso_encoding() - 1; }

}  // namespace

const std::vector<std::string>& date_parts() {
  static const std::vector<std::string> kNames = {"hour", "weekday", "hour_of_week", "day", "month"};
  return kNames;
}

int64_t date_part_size(DatePart part) {
  constexpr int64_t kSizes[] = {kHours, kWeekdays, kHours * kWeekdays, kDays, kMonths};
  return kSizes[static_cast<size_t>(part)];
}

int64_t date_part(std::string_view text, DatePart part) {
  Moment moment;
  if (!read_moment(text, &moment)) return -1;
  if (part == DatePart::kHour) return moment.has_hour ? moment.hour : -1;
  if (!moment.has_day) return -1;
  if (part == DatePart::kWeekday) return weekday(moment);
  if (part == DatePart::kHourOfWeek) return moment.has_hour ? kHours * weekday(moment) + moment.hour : -1;
  const std::chrono::year_month_day date(moment.day);
  const auto number = part == DatePart::kDay ? static_cast<unsigned>(date.day()) : static_cast<unsigned>(date.month());
  return static_cast<int64_t>(number) - 1;
}

}  // namespace anabranch::data
