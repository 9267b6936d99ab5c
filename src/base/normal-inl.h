// The inverse of the normal distribution function, by which uniform random numbers become normal ones. AB_NORMAL_FN
// marks functions: device kernels (ops/tensor/random_functions.h) include this file, too.

// From the highest power down.
template <int kTerms> AB_NORMAL_FN double polynomial(double x, const double (&from_highest)[kTerms]) {
  double y = 0;
  for (const double a : from_highest) y = y * x + a;
  return y;
}

// Inverse of the normal distribution function, to 16 digits if the smaller tail is above exp(-25): Wichura, Algorithm
// AS 241, Applied Statistics 37 (1988).
AB_NORMAL_FN double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    const double over[] = {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
                           4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
                           1.3314166789178437745e2, 3.3871328727963666080};
    const double under[] = {
        5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
        5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1};
    return q * polynomial(r, over) / polynomial(r, under);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p)) - 1.6;
  const double over[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                         1.27045825245236838258,    3.64784832476320460504,    5.76949722146069140550,
                         4.63033784615654529590,    1.42343711074968357734};
  const double under[] = {
      1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
      6.89767334985100004550e-1, 1.67638483018380384940,    2.05319162663775882187,    1};
  const double z = polynomial(r, over) / polynomial(r, under);
  return q < 0 ? -z : z;
}

// P(Z < -2), Z standard normal.
AB_NORMAL_FN double two_deviations_tail() { return 0.5 * std::erfc(std::numbers::sqrt2); }

// Truncated normal within two standard deviations, by inversion.
AB_NORMAL_FN double truncated_normal(double u, double tail) { return normal_quantile(tail + u * (1 - 2 * tail)); }
