//! A descriptor that Python names by its number.
#![allow(unsafe_code)]

use pyo3::{PyResult, exceptions::PyOSError};
use std::os::fd::BorrowedFd;

/// The descriptor of that number.
pub(crate) fn borrowed<'a>(number: i32) -> PyResult<BorrowedFd<'a>> {
    if number < 0 {
        return Err(PyOSError::new_err("the socket is closed"));
    }
    // SAFETY: it is not -1, and only asked about: a number that is not open makes the system calls
    // on it fail.
    Ok(unsafe { BorrowedFd::borrow_raw(number) })
}
