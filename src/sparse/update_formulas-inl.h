// The formulas of update_rules.h, as the documentation of the ops gives them. Each operation rounds separately, in the
// order written here. AB_RULE_FN marks functions. Included within a namespace that has sqrt, pow, abs, max, and
// pick(test, a, b), which is a where the test holds: by ops/optim/element_rules.h and, for every instruction set, by
// rule_vectors-inl.h.

template <class T, class V> AB_RULE_FN void step(const rules::Sgd<T>& r, const V& g, V& p) { p = p - r.rate * g; }

template <class T, class V> AB_RULE_FN void step(const rules::Momentum<T>& r, const V& g, V& p, V& velocity) {
  velocity = velocity * r.mu + g;
  p = p - r.rate * velocity;
}
template <class T, class V> AB_RULE_FN void step(const rules::Nesterov<T>& r, const V& g, V& p, V& velocity) {
  velocity = velocity * r.mu + g;
  p = p - (g + velocity * r.mu) * r.rate;
}

template <class T, class V> AB_RULE_FN void step(const rules::Adagrad<T>& r, const V& g, V& p, V& moment) {
  moment = moment + g * g;
  p = p - r.rate * g / (sqrt(moment) + r.epsilon);
}
template <class T, class V> AB_RULE_FN void step(const rules::DecayedAdagrad<T>& r, const V& g, V& p, V& moment) {
  moment = r.keep * moment + r.add * g * g;
  p = p - r.rate * g / (sqrt(moment) + r.epsilon);
}

template <class T, class V>
AB_RULE_FN void step(const rules::Adadelta<T>& r, const V& g, V& p, V& squared_grad, V& squared_update) {
  const T add = 1 - r.rho;
  squared_grad = r.rho * squared_grad + add * (g * g);
  const V under = squared_grad + r.epsilon;
  const V update = -sqrt((squared_update + r.epsilon) / under) * g;
  squared_update = r.rho * squared_update + add * (update * update);
  // As in Fluid 1.8.5, the step uses the average that already contains the update.
  p = p - sqrt((squared_update + r.epsilon) / under) * g;
}

template <class T, class V> AB_RULE_FN void step(const rules::Adam<T>& r, const V& g, V& p, V& first, V& second) {
  const T add1 = 1 - r.beta1, add2 = 1 - r.beta2;
  first = r.beta1 * first + add1 * g;
  second = r.beta2 * second + add2 * (g * g);
  p = p - r.rate * (first / (sqrt(second) + r.epsilon));
}

template <class T, class V> AB_RULE_FN void step(const rules::Adamax<T>& r, const V& g, V& p, V& moment, V& norm) {
  const T add1 = 1 - r.beta1;
  const V size = abs(g), old = r.beta2 * norm + r.epsilon;
  moment = r.beta1 * moment + add1 * g;
  norm = max(size, old);
  p = p - r.rate * (moment / norm);
}

template <class T, class V> AB_RULE_FN void step(const rules::RmsProp<T>& r, const V& g, V& p, V& square, V& moment) {
  const T add = 1 - r.decay;
  square = r.decay * square + add * (g * g);
  moment = r.mu * moment + r.rate * g / sqrt(square + r.epsilon);
  p = p - moment;
}
template <class T, class V>
AB_RULE_FN void step(const rules::CenteredRmsProp<T>& r, const V& g, V& p, V& square, V& moment, V& mean) {
  const T add = 1 - r.decay;
  square = r.decay * square + add * (g * g);
  mean = r.decay * mean + add * g;
  moment = r.mu * moment + r.rate * g / sqrt(square - mean * mean + r.epsilon);
  p = p - moment;
}

template <class T, class V> AB_RULE_FN V root_of(const rules::Ftrl<T>& r, const V& x) {
  return r.power == T(-0.5) ? sqrt(x) : pow(x, -r.power);
}
template <class T, class V> AB_RULE_FN void step(const rules::Ftrl<T>& r, const V& g, V& p, V& squared, V& linear) {
  const V zero = T(0), border = r.l1, sum = squared + g * g, root = root_of(r, sum);
  linear = linear + (g - (root - root_of(r, squared)) / r.rate * p);
  const V pull = pick(linear > zero, border, pick(linear < zero, -border, zero)) - linear;
  p = pick(abs(linear) > border, pull / (root / r.rate + 2 * r.l2), zero);
  squared = sum;
}
