"""Reads a sparse image with libmodi-python (PyPI) and writes the device to a file.

Usage: udsp.py IMAGE OUT
"""
import sys

import pymodi

image = pymodi.handle()
image.open(sys.argv[1])
left = image.get_media_size()
with open(sys.argv[2], "wb") as out:
    while left > 0:
        data = image.read_buffer(min(left, 1 << 20))
        if not data:
            sys.exit("the device ends too early")
        out.write(data)
        left -= len(data)
print(image.get_media_size())
