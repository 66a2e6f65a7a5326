"""Stops a file system as a power cut would: shutdown.py MOUNT FLAG (0 all is written, 1 the log is, 2 nothing is)"""
import fcntl
import os
import struct
import sys

# EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
SHUTDOWN = 0x8004587D

mount, flag = sys.argv[1:]
directory = os.open(mount, os.O_RDONLY)
fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", int(flag)))
