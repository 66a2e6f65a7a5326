"""refuse_io_uring.py ERRNO COMMAND…: runs it where io_uring_setup fails, as the seccomp filter of a container engine has it."""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
IO_URING_SETUP = 425  # on every architecture
RET_ERRNO, RET_ALLOW = 0x0005_0000, 0x7FFF_0000
filter_code = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (
        (0x20, 0, 0, 0),  # load the number of the call
        (0x15, 0, 1, IO_URING_SETUP),  # jump over the next if it is another
        (0x06, 0, 0, RET_ERRNO | int(sys.argv[1])),
        (0x06, 0, 0, RET_ALLOW),
    )
)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


libc = ctypes.CDLL(None, use_errno=True)
program = Program(len(filter_code) // 8, filter_code)
for arguments in (
    (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
    (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
):
    if libc.prctl(*arguments) != 0:
        sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[2], sys.argv[2:])
