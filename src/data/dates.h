// Parts of dates and times that are texts. Each part is that of the text as it is written: an offset such as +09:00 is
// checked and changes nothing. Seconds since 1970 are in UTC.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace anabranch::data {

enum class DatePart : uint8_t { kHour, kWeekday, kHourOfWeek, kDay, kMonth };

// In the order of DatePart.
const std::vector<std::string>& date_parts();
// The values of a part are below this number.
int64_t date_part_size(DatePart part);

// 2024-01-05, 2024/01/05 or 20240105, perhaps with a time (13:05, 13:05:59, 13:05:59.25) after a T or a space, perhaps
// with Z or an offset; a time alone; or a number of seconds since 1970 with 9 to 11 digits, and perhaps a fraction, or
// of milliseconds (12, 13), microseconds (15, 16) or nanoseconds (18, 19). weekday: 0 is Monday; day and month count
// from 0. -1: it is none of these, or lacks the part.
int64_t date_part(std::string_view text, DatePart part);

}  // namespace anabranch::data
