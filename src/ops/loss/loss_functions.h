// Losses of a prediction and a target, and of their difference, with their derivatives.
#pragma once
#include <cmath>

#include "ops/loss/logistic.h"

namespace anabranch::loss {

template <class T> AB_HD T sign(T x) { return x > 0 ? T{1} : x < 0 ? T{-1} : T{0}; }

template <class T> AB_HD T hinge(T x, T y) {
  const T gap = 1 - x * (2 * y - 1);
  return gap < 0 ? T{0} : gap;  // keeps NaN
}
template <class T> AB_HD T hinge_slope(T x, T y) { return x * (2 * y - 1) < 1 ? 1 - 2 * y : T{0}; }

// s: softplus(x). Labels encode a click and an optional teacher's score: below -1: no click, no score; below 0: click,
// no score; [0, 1): no click, score y; from 1: click, score y - 1. Computes all four cases, then selects: loops
// vectorize.
template <class T> AB_HD T teacher_student(T s, T x, T y) {
  const T click = s - x, without = s + s - x * y, with = click + s - x * (y - 1);
  const T scored = y < 1 ? without : with, known = y < 0 ? click : scored;
  return y < -1 ? s : known;
}
template <class T> AB_HD T teacher_student_slope(T x, T y, T low, T high) {
  if (x >= high || x <= low) return 0;
  const T p = logistic(x);
  if (y < -1) return p;
  return y < 0 ? p - 1 : 2 * p - y;
}

// For a logarithm x of a probability.
template <class T> AB_HD T kldiv(T x, T target) { return target <= 0 ? T{0} : target * (std::log(target) - x); }
template <class T> AB_HD T kldiv_slope(T target, T dloss, T over) {
  const T slope = -target * dloss / over;
  return target <= 0 ? T{0} : slope;
}

struct Huber {  // p: delta
  template <class T> AB_HD static T forward(T r, const T* p) {
    const T size = std::abs(r);
    return size <= p[0] ? r * r / 2 : p[0] * (size - p[0] / 2);
  }
  template <class T> AB_HD static T backward(T r, T dy, const T* p) {
    return dy * (std::abs(r) <= p[0] ? r : p[0] * sign(r));
  }
};

struct SmoothL1 {  // p: the square of sigma
  template <class T> AB_HD static T forward(T d, const T* p) {
    const T size = std::abs(d);
    return size < 1 / p[0] ? d * d * p[0] / 2 : size - T(0.5) / p[0];
  }
  template <class T> AB_HD static T slope(T d, const T* p) { return std::abs(d) < 1 / p[0] ? p[0] * d : sign(d); }
  template <class T> AB_HD static T backward(T d, T dy, const T* p) { return dy * slope(d, p); }
};

}  // namespace anabranch::loss
