#pragma once

#include <nanobind/ndarray.h>

#include <span>

namespace penstock {

// NumPy arrays that native code reads or fills in place.
template <class T>
using In = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using Out = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
std::span<const T> view(const In<T>& array) {
  return {array.data(), array.size()};
}

template <class T>
std::span<T> view(Out<T>& array) {
  return {array.data(), array.size()};
}

}  // namespace penstock
