// The logistic function and its integral, which most losses of two outcomes are made of.
#pragma once
#include <algorithm>
#include <cmath>

namespace anabranch::loss {

// max(x, 0) + log(1 + e^-|x|) = log(1 + e^x) without overflow.
template <class T> T softplus(T x) { return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x))); }

template <class T> T logistic(T x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace anabranch::loss
