"""Reads an ASIF image with dissect.hypervisor (PyPI) and writes the device to a file.

Usage: asif.py IMAGE OUT
"""
import sys

from dissect.hypervisor.disk.asif import ASIF

with open(sys.argv[1], "rb") as fh, open(sys.argv[2], "wb") as out:
    image = ASIF(fh)
    stream = image.open()
    left = image.size
    while left > 0:
        data = stream.read(min(left, 1 << 20))
        if not data:
            sys.exit("the device ends too early")
        out.write(data)
        left -= len(data)
    print(image.size, image.internal_metadata.get("stable uuid"))
