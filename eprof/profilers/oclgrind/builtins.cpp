// OpenCL's built-in functions as Oclgrind computes them, for kernels that lowering.py builds; names as builtins.py has them.
// Compiled without contraction. Integers come extended to 64 bits, with the number of bits of their type last.
#include <cfenv>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>

#include "plugin.h"

typedef uint64_t u64;
typedef int64_t i64;
extern "C" void eprof_fail(u64 *context, const char *what);

#define D1(name, value) extern "C" double eprof_##name(double x) { return value; }
#define D2(name, value) extern "C" double eprof_##name(double x, double y) { return value; }
#define D3(name, value) extern "C" double eprof_##name(double x, double y, double z) { return value; }
D1(acospi, acos(x) / M_PI) D1(asinpi, asin(x) / M_PI) D1(atanpi, atan(x) / M_PI)
D1(cospi, cos(x * M_PI)) D1(sinpi, sin(x * M_PI)) D1(tanpi, tan(x * M_PI))
D1(degrees, x * (180 / M_PI)) D1(radians, x * (M_PI / 180))
D1(exp10, pow(10, x)) D1(recip, 1.0 / x) D1(rsqrt, 1.0 / sqrt(x))
D1(sign, x > 0 ? 1.0 : x == 0 ? -0.0 : x < 0 ? -1.0 : 0.0)
D2(atan2pi, atan2(x, y) / M_PI) D2(divide, x / y) D2(step, y < x ? 0.0 : 1.0)
D2(maxmag, fabs(x) > fabs(y) ? x : fabs(y) > fabs(x) ? y : fmax(x, y))
D2(minmag, fabs(x) < fabs(y) ? x : fabs(y) < fabs(x) ? y : fmin(x, y))
D3(mix, x + (y - x) * z)

static double between(double x, double low, double high) {
  x = x > low ? x : low;
  return x < high ? x : high;
}

extern "C" double eprof_smoothstep(double low, double high, double x) {
  double t = between((x - low) / (high - low), 0, 1);
  return t * t * (3 - 2 * t);
}

extern "C" double eprof_bitselect(double x, double y, double z) {  // as Oclgrind: of doubles, whatever was given
  u64 a, b, c;
  memcpy(&a, &x, 8), memcpy(&b, &y, 8), memcpy(&c, &z, 8);
  a = (a & ~c) | (b & c);
  memcpy(&x, &a, 8);
  return x;
}

extern "C" double eprof_powr(double x, double y) {
  if (x < 0 || std::isnan(x) || std::isnan(y))
    return NAN;
  if (x == 1)
    return std::isinf(y) ? NAN : 1;
  if (y == 0)
    return x == 0 || x == INFINITY ? NAN : 1;
  if (x == 0)
    return y < 0 ? INFINITY : 0;
  if (x == INFINITY)
    return y < 0 ? 0 : INFINITY;
  return pow(x, y);
}

extern "C" double eprof_ldexp(double x, i64 n) { return ldexp(x, int(n)); }
extern "C" double eprof_pown(double x, i64 n) { return pow(x, int32_t(n)); }
extern "C" double eprof_rootn(double x, i64 n) {
  if (n == 0 || (x < 0 && !(n & 1)))
    return NAN;
  if (x == 0)
    return n < 0 ? (n & 1 ? copysign(INFINITY, x) : INFINITY) : n & 1 ? x : 0.0;
  double root = static_cast<double>(powl(fabsl(x), 1.0L / n));
  return x < 0 ? -root : root;
}
extern "C" i64 eprof_ilogb(double x) { return std::isnan(x) ? INT_MAX : ilogb(x); }
extern "C" i64 eprof_isfinite(double x) { return std::isfinite(x); }
extern "C" i64 eprof_isinf(double x) { return std::isinf(x); }
extern "C" i64 eprof_isnan(double x) { return std::isnan(x); }
extern "C" i64 eprof_isnormal(double x) { return std::isnormal(x); }
extern "C" i64 eprof_signbit(double x) { return std::signbit(x); }

extern "C" double eprof_fract(double x, double *whole) {
  *whole = std::isnan(x) ? NAN : floor(x);
  return std::isnan(x) ? NAN : fmin(x - *whole, nextafter(1, 0));
}
extern "C" double eprof_fractf(double x, double *whole) {
  *whole = std::isnan(x) ? NAN : floorf(float(x));
  return std::isnan(x) ? NAN : fmin(x - *whole, nextafterf(1, 0));
}
extern "C" double eprof_frexp(double x, double *exponent) {
  int e = 0;
  double r = frexp(x, &e);
  *exponent = e;
  return r;
}
extern "C" double eprof_lgamma_r(double x, double *sign) {
  *sign = tgamma(x) < 0 ? -1 : 1;
  return lgamma(x);
}
extern "C" double eprof_modf(double x, double *whole) {
  *whole = trunc(x);
  return copysign(std::isinf(x) ? 0.0 : x - *whole, x);
}
extern "C" double eprof_remquo(double x, double y, double *quotient) {
  int q = 0;
  double r = remquo(x, y, &q);
  *quotient = q;
  return r;
}
extern "C" double eprof_sincos(double x, double *cosine) {
  *cosine = cos(x);
  return sin(x);
}

static double length_of(const double *values, i64 number, double *scale) {
  double square = 0, rescale = 1;
  for (i64 i = 0; i < number; i++)
    square += values[i] * values[i];
  if (square == INFINITY)
    rescale = ldexp(1.0, -512);
  else if (square < number * DBL_MIN / DBL_EPSILON)
    rescale = ldexp(1.0, 640);
  if (rescale != 1.0) {
    square = 0;
    for (i64 i = 0; i < number; i++)
      square += values[i] * rescale * (values[i] * rescale);
  }
  *scale = rescale;
  return square;
}
extern "C" double eprof_length(double x, double y, double z, double w, i64 number) {
  double values[4] = {x, y, z, w}, scale;
  double square = length_of(values, number, &scale);
  return sqrt(square) * (1.0 / scale);
}
extern "C" double eprof_normalize(double x, double y, double z, double w, i64 number, i64 lane) {
  double values[4] = {x, y, z, w}, scale;
  double square = length_of(values, number, &scale);
  if (scale < 1 && square == INFINITY) {  // only the infinite ones count
    square = 0;
    for (double &value : values)
      square += std::isinf(value);
    return copysign(std::isinf(values[lane]) ? 1.0 : 0.0, values[lane]) / sqrt(square);
  }
  if (scale > 1 && square == 0)
    return values[lane];
  return values[lane] * scale / sqrt(square);
}

// Integers.

static u64 most_u(u64 bits) { return bits == 64 ? UINT64_MAX : (u64(1) << bits) - 1; }
static i64 most_s(u64 bits) { return i64(most_u(bits) >> 1); }
static i64 limit_s(i64 x, u64 bits) { return x > most_s(bits) ? most_s(bits) : x < ~most_s(bits) ? ~most_s(bits) : x; }
static u64 high_u(u64 x, u64 y, u64 bits) {
  return bits == 64 ? u64((unsigned __int128)x * y >> 64) : (x * y) >> bits;
}
static i64 high_s(i64 x, i64 y, u64 bits) { return bits == 64 ? i64((__int128)x * y >> 64) : i64(u64(x) * u64(y)) >> bits; }

#define U(name, value) extern "C" u64 eprof_u_##name(u64 a, u64 b, u64 c, u64 bits) { (void)b, (void)c, (void)bits; return value; }
#define S(name, value) extern "C" i64 eprof_s_##name(i64 a, i64 b, i64 c, u64 bits) { (void)b, (void)c, (void)bits; return value; }
#define BOTH(name, value) U(name, value) S(name, value)
U(abs, a) S(abs, a < 0 ? i64(0 - u64(a)) : a)
U(abs_diff, a > b ? a - b : b - a) S(abs_diff, i64(a > b ? u64(a) - u64(b) : u64(b) - u64(a)))
U(hadd, (a >> 1) + (b >> 1) + (a & b & 1)) S(hadd, (a >> 1) + (b >> 1) + (a & b & 1))
U(rhadd, (a >> 1) + (b >> 1) + ((a | b) & 1)) S(rhadd, (a >> 1) + (b >> 1) + ((a | b) & 1))
U(mul_hi, high_u(a, b, bits)) S(mul_hi, high_s(a, b, bits))
U(mad_hi, high_u(a, b, bits) + c) S(mad_hi, i64(u64(high_s(a, b, bits)) + u64(c)))
U(add_sat, bits < 64 ? (a + b > most_u(bits) ? most_u(bits) : a + b) : (a + b < a ? UINT64_MAX : a + b))
U(sub_sat, b > a ? 0 : a - b)
U(mad_sat, bits < 64 ? (a * b + c > most_u(bits) ? most_u(bits) : a * b + c)
                     : (high_u(a, b, 64) || c > a * b + c ? UINT64_MAX : a * b + c))

static u64 leading(u64 x, u64 bits) {
  x &= most_u(bits);
  return x ? bits - 64 + __builtin_clzll(x) : bits;
}
static u64 rotated(u64 x, u64 by, u64 bits) {
  x &= most_u(bits), by = (by & most_u(bits)) % bits;
  return by ? x << by | x >> (bits - by) : x;
}
BOTH(clz, leading(a, bits))
BOTH(rotate, rotated(a, b, bits))

extern "C" i64 eprof_s_add_sat(i64 a, i64 b, i64, u64 bits) {
  i64 sum;
  if (__builtin_add_overflow(a, b, &sum))
    return a > 0 ? INT64_MAX : INT64_MIN;
  return limit_s(sum, bits);
}
extern "C" i64 eprof_s_sub_sat(i64 a, i64 b, i64, u64 bits) {
  i64 rest;
  if (__builtin_sub_overflow(a, b, &rest))
    return a > 0 ? INT64_MAX : INT64_MIN;
  return limit_s(rest, bits);
}
extern "C" i64 eprof_s_mad_sat(i64 a, i64 b, i64 c, u64 bits) {
  if (bits < 64)
    return limit_s(i64(u64(a) * u64(b) + u64(c)), bits);
  i64 product = i64(u64(a) * u64(b)), sum = i64(u64(product) + u64(c));
  if (high_s(a, b, 64))  // as Oclgrind, which takes a negative product for one that is too large
    return (a > 0) ^ (b > 0) ? INT64_MIN : INT64_MAX;
  return (product > 0) == (c > 0) && (product > 0) != (sum > 0) ? (product > 0 ? INT64_MAX : INT64_MIN) : sum;
}

// Conversions. mode: 0 the default of the target, 1 to nearest, 2 to zero, 3 up, 4 down.

struct Rounding {
  int before = fegetround();
  explicit Rounding(u64 mode) { fesetround(mode == 2 ? FE_TOWARDZERO : mode == 3 ? FE_UPWARD : mode == 4 ? FE_DOWNWARD : FE_TONEAREST); }
  ~Rounding() { fesetround(before); }
};
extern "C" double eprof_round_f(double x, u64 mode) {
  Rounding rounding(mode);
  volatile double from = x;
  volatile float to = float(from);
  return to;
}
extern "C" double eprof_round_s(i64 x, u64 mode, u64 size) {
  Rounding rounding(mode);
  volatile i64 from = x;
  volatile double wide = double(from);
  volatile float narrow = float(wide);
  return size == 4 ? narrow : wide;
}
extern "C" double eprof_round_u(u64 x, u64 mode, u64 size) {
  Rounding rounding(mode);
  volatile u64 from = x;
  volatile double wide = double(from);
  volatile float narrow = float(from);
  return size == 4 ? narrow : wide;
}
static double to_whole(double x, u64 mode) {
  switch (mode) {
  case 1: return nearbyint(x);
  case 3: return ceil(x);
  case 4: return floor(x);
  default: return trunc(x);
  }
}
extern "C" u64 eprof_u_of_f(double x, u64 mode, u64 saturated, u64 bits) {
  if (!saturated)
    return u64(to_whole(x, mode));
  if (!(x > 0))
    return 0;
  double whole = to_whole(x, mode);
  return whole >= ldexp(1.0, int(bits)) ? most_u(bits) : u64(whole) > most_u(bits) ? most_u(bits) : u64(whole);
}
extern "C" i64 eprof_s_of_f(double x, u64 mode, u64 saturated, u64 bits) {
  if (!saturated)
    return i64(to_whole(x, mode));
  double whole = to_whole(x, mode), limit = ldexp(1.0, int(bits) - 1);
  return whole >= limit ? most_s(bits) : whole >= -limit ? i64(whole) : ~most_s(bits);
}
extern "C" u64 eprof_u_sat_u(u64 x, u64 bits) { return x < most_u(bits) ? x : most_u(bits); }
extern "C" u64 eprof_u_sat_s(i64 x, u64 bits) { return x < 0 ? 0 : eprof_u_sat_u(u64(x), bits); }
extern "C" i64 eprof_s_sat_u(u64 x, u64 bits) { return x < u64(most_s(bits)) ? i64(x) : most_s(bits); }
extern "C" i64 eprof_s_sat_s(i64 x, u64 bits) { return limit_s(x, bits); }

extern "C" double eprof_of_half(u64 bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31 && fraction) {  // what a number that is none carries is kept
    u64 same = (bits & 0x8000) << 48 | 0x7FFull << 52 | u64(fraction) << 42;
    double value;
    memcpy(&value, &same, 8);
    return value;
  }
  double size = exponent == 31 ? INFINITY : ldexp(exponent ? fraction + 1024 : fraction, exponent ? exponent - 25 : -24);
  return bits & 0x8000 ? -size : size;
}
extern "C" u64 eprof_half_of(double x, u64 mode) {
  u64 sign = std::signbit(x) ? 0x8000 : 0;
  double size = fabs(x);
  if (std::isnan(x)) {
    u64 same;
    memcpy(&same, &x, 8);
    return sign | 0x7C00 | (same >> 42 & 1023);
  }
  bool up = sign ? mode == 4 : mode == 3;
  int exponent = size >= ldexp(1, -14) && !std::isinf(size) ? ilogb(size) : -14;
  double steps = ldexp(size, 10 - exponent), whole = up ? ceil(steps) : mode == 1 ? nearbyint(steps) : floor(steps);
  u64 bits = std::isinf(size) ? 0x7C00 : u64(whole) + (size >= ldexp(1, -14) ? u64(exponent + 14) << 10 : 0);
  if (std::isinf(size) || exponent > 15 || bits >= 0x7C00)
    bits = std::isinf(size) || up || mode == 1 ? 0x7C00 : 0x7BFF;
  return sign | bits;
}

// Memory of a kernel, by the address that it knows.

static std::mutex printf_mutex;
static thread_local bool is_printing;

static char *host(u64 *context, u64 address, u64 space, u64 bytes) {
  const Entry *table = reinterpret_cast<const Entry *>(context[space == 3 ? LOCALS : GLOBALS]);
  u64 index = address >> TAG_SHIFT;
  if (index >= context[space == 3 ? N_LOCALS : N_GLOBALS])
    index = 0;
  u64 offset = address - table[index].tag;
  if (offset > table[index].size || table[index].size - offset < bytes) {
    if (is_printing)
      is_printing = false, printf_mutex.unlock();  // no destructor runs behind eprof_fail
    eprof_fail(context, "a copy or printf, outside of its buffer");
  }
  return reinterpret_cast<char *>(table[index].base + offset);
}

extern "C" void eprof_copy(u64 *context, u64 to, u64 to_space, u64 from, u64 from_space, u64 size, u64 count, u64 stride) {
  if (context[LOCAL_LINEAR])
    return;  // the first work-item copies for all
  for (u64 i = 0; i < count; i++) {
    char *target = host(context, to + i * size * (to_space == 3 ? 1 : stride), to_space, size);
    memcpy(target, host(context, from + i * size * (to_space == 3 ? stride : 1), from_space, size), size);
  }
}

extern "C" void eprof_end(u64 *context) { eprof_fail(context, "an instruction that it must not reach"); }

// words: of each value its number of elements and 32 times their bytes, then the elements.
extern "C" void eprof_printf(u64 *context, u64 text, const u64 *words) {
  printf_mutex.lock();
  is_printing = true;
  while (char c = *host(context, text++, 2, 1)) {
    if (c != '%') {
      std::cout << c;
      continue;
    }
    std::string form = "%";
    unsigned lanes = 1;
    while ((c = *host(context, text, 2, 1))) {
      text++;
      if (c == 'v') {
        lanes = *host(context, text++, 2, 1) - '0';
        if (lanes == 1)
          lanes = 16, text++;
        continue;
      }
      if (c == 'h')
        continue;
      form += c;
      if (c == '%') {
        printf("%%");
        break;
      }
      if (!strchr("cdiouxXpfFeEgGaAs", c))
        continue;
      unsigned given = *words & 31, size = *words / 32;
      words++;
      for (unsigned i = 0; i < lanes && i < given; i++) {
        u64 word = words[i];
        double number;
        memcpy(&number, &word, 8);
        if (i)
          printf(",");
        if (c == 's') {
          std::string string;
          for (u64 at = word; word && (c = *host(context, at, 2, 1)); at++)
            string += c;
          printf(form.c_str(), word ? string.c_str() : nullptr);
          c = 's';
        } else if (strchr("cdi", c)) {
          printf(form.c_str(), i64(word << (64 - 8 * size)) >> (64 - 8 * size));
        } else if (strchr("ouxXp", c)) {
          printf(form.c_str(), word);
        } else {
          printf(form.c_str(), number);
        }
      }
      words += given;
      break;
    }
    if (!c) {
      std::cout << form;
      break;
    }
  }
  is_printing = false;
  printf_mutex.unlock();
}
