// Compiled by tools/build_times.py to see how fast this machine and compiler are. It uses the standard library only and
// must not change: the committed bounds are relative to it.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

using Value = std::variant<int, double, std::string, std::vector<double>>;

template <class T> std::map<std::string, T> sorted_by_name(const std::unordered_map<std::string, T>& values) {
  return {values.begin(), values.end()};
}

template <class T> T sum_of_squares(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), T{}, [](T sum, T value) { return sum + value * value; });
}

template <class T> void sort_stably(std::vector<T>* values, const std::function<bool(const T&, const T&)>& less) {
  std::stable_sort(values->begin(), values->end(), less);
}

std::string print(const Value& value) {
  std::ostringstream out;
  std::visit(
      [&out](const auto& held) {
        if constexpr (requires { held.begin(); held.front() + 1.0; }) {
          for (const auto& element : held) out << element << ' ';
        } else {
          out << held;
        }
      },
      value);
  return out.str();
}

std::string print_all(const std::unordered_map<std::string, std::shared_ptr<Value>>& values) {
  std::string text;
  for (const auto& [name, value] : sorted_by_name(values)) text += name + "=" + print(*value) + "\n";
  return text;
}

template void sort_stably<int>(std::vector<int>*, const std::function<bool(const int&, const int&)>&);
template void sort_stably<double>(std::vector<double>*, const std::function<bool(const double&, const double&)>&);
template void sort_stably<std::string>(std::vector<std::string>*,
                                       const std::function<bool(const std::string&, const std::string&)>&);
template float sum_of_squares<float>(const std::vector<float>&);
template double sum_of_squares<double>(const std::vector<double>&);
