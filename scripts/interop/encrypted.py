#!/usr/bin/env python3
"""Decrypts encrypted Apple disk images (encrcdsa v2) and checks what is inside, independently of the Go engine.

Usage: encrypted.py IMAGE [--passphrase-stdin] [--sha256 | --raw OUT] [--check]

IMAGE is a single file or a sparse bundle. Without an action it is only unlocked. The passphrase is one line of
stdin, asked for on a terminal; with --passphrase-stdin it is all of stdin up to a NUL, a trailing newline
included, as for hdiutil -stdinpass.
Exit status: 0 good, 1 wrong or unreadable, 2 usage, 3 wrong passphrase.

Written from the project's format page alone, sections 1 (probing), 5 (sparse bundle) and 8.1, 8.2, 8.4 to 8.6
(encryption); no code of another decryptor was looked at. disk.py, next to it, does the rest. Needs Python 3.9 or later and the
package `cryptography`.
"""
import argparse
import getpass
import hashlib
import hmac
import os
import plistlib
import re
import struct
import sys

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from disk import SECTOR, Checker, Failure, SparseImage

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:  # before cryptography 43
    TripleDES = algorithms.TripleDES

CHUNK = 1 << 20  # bytes decrypted at once
HOLE = 1 << 16  # granularity of the holes in --raw
AES = 0x80000001  # CSSM numbers
TRIPLE_DES = 17


def all_zero(data):
    return data.count(0) == len(data)


class Header:
    """The fixed header and the passphrase records of `path`: the image itself, or the token of a bundle."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            raw = file.read(0x4C)
            if raw[:8] != b"encrcdsa":
                file.seek(max(0, os.path.getsize(path) - 8))
                if file.read() == b"cdsaencr":
                    self.refuse("it is of the old cdsaencr v1 format, which this program does not read")
                self.refuse("no encrcdsa signature: it is not encrypted")
            if len(raw) < 0x4C:
                self.refuse("the file ends inside it")
            (version, iv_size, mode, algorithm, self.key_bits, iv_algorithm, iv_key_bits) = struct.unpack_from(
                ">7I", raw, 8)
            self.block, self.length, self.data_offset, records = struct.unpack_from(">IQQI", raw, 0x34)
            self.expect("version", version, 2)
            self.expect("block IV size", iv_size, 16)
            self.expect("block mode", mode, 5)
            self.expect("block algorithm", algorithm, AES)
            self.expect("AES key bits", self.key_bits, 128, 256)
            self.expect("IV algorithm", iv_algorithm, 0x5B)
            self.expect("IV key bits", iv_key_bits, 160)
            self.expect("block size", self.block, 512, 4096)
            end = 0x4C + 20 * records
            if not end <= self.data_offset <= os.path.getsize(path):
                self.refuse(f"{records} key records and data offset {self.data_offset} do not fit the file")
            table = file.read(20 * records)
            self.records = []
            for kind, offset, length in struct.iter_unpack(">IQQ", table):
                if offset < end or offset + length > self.data_offset:
                    self.refuse(f"the record at {offset} lies outside the header")
                if kind == 1:
                    if length != 616:
                        self.refuse(f"the passphrase record has {length} bytes, not 616")
                    file.seek(offset)
                    self.records.append(file.read(length))
        if not self.records:
            self.refuse("it has no passphrase record")

    def refuse(self, cause):
        raise Failure(f"reading encryption header of {self.path}: {cause}")

    def expect(self, name, value, *wanted):
        if value not in wanted:
            self.refuse(f"{name} is {value:#x}, not {' or '.join(f'{w:#x}' for w in wanted)}")

    def unlock(self, passphrase):
        """Returns the AES key and the HMAC key."""
        for record in self.records:
            keys = self.unwrap(record, passphrase)
            if keys:
                return keys
        raise Failure(f"unlocking {self.path}: wrong passphrase", 3)

    def unwrap(self, record, passphrase):
        kdf, prf, iterations, salt_length = struct.unpack_from(">4I", record)
        (iv_length,) = struct.unpack_from(">I", record, 0x30)
        wrap_bits, wrap, padding, mode, blob_length = struct.unpack_from(">5I", record, 0x54)
        key_length = self.key_bits // 8
        self.expect("KDF", kdf, 103)
        self.expect("KDF PRF", prf, 0)
        self.expect("salt length", salt_length, 20)
        self.expect("wrap IV length", iv_length, 8)
        self.expect("wrap key bits", wrap_bits, 192)
        self.expect("wrap algorithm", wrap, TRIPLE_DES, AES)
        self.expect("wrap padding", padding, 7)
        self.expect("wrap mode", mode, 6)
        self.expect("wrapped key length", blob_length, key_length + 32)
        if iterations == 0:
            self.refuse("0 iterations")
        kek = hashlib.pbkdf2_hmac("sha1", passphrase, record[0x10:0x24], iterations, 24)
        iv = record[0x34:0x3C]
        cipher = (Cipher(TripleDES(kek), modes.CBC(iv)) if wrap == TRIPLE_DES
                  else Cipher(algorithms.AES(kek), modes.CBC(iv + bytes(8))))
        plain = cipher.decryptor().update(record[0x68:0x68 + blob_length])
        if plain[key_length + 20:] != b"CKIE\0" + b"\7" * 7:
            return None
        return plain[:key_length], plain[key_length:key_length + 20]


class Encrypted:
    """The decrypted data of a single file, or of a bundle; a file is one band from its data offset on."""

    def __init__(self, image, passphrase):
        self.image = image
        self.problems = []  # what decryption can live with, but --check reports
        self.bundle = os.path.isdir(image)
        self.header = Header(os.path.join(image, "token") if self.bundle else image)
        if self.bundle:
            self.open_bundle()
        else:
            self.open_file()
        self.key, hmac_key = self.header.unlock(passphrase())
        self.hmac = hmac.new(hmac_key, digestmod="sha1")  # copied for each block: faster than a new one

    def open_file(self):
        header, have = self.header, os.path.getsize(self.image)
        self.size = header.length
        self.band_size = -(-self.size // header.block) * header.block
        self.start, self.bands = header.data_offset, {0: self.image}
        if have < self.start + self.band_size:
            raise Failure(f"reading {self.image}: it has {have} bytes, its header wants {self.start + self.band_size}")
        if have > self.start + self.band_size:
            self.problems.append(f"checking {self.image}: {have - self.start - self.band_size} bytes behind the data")

    def open_bundle(self):
        info = self.read_plist()
        self.size, self.band_size = info["size"], info["band-size"]
        if self.header.length != 0:
            self.problems.append(f"checking {self.header.path}: plaintext length {self.header.length}, not 0")
        if os.path.getsize(self.header.path) != self.header.data_offset:
            self.problems.append(f"checking {self.header.path}: its length is not its data offset")
        self.start, self.bands = 0, {}
        folder = os.path.join(self.image, "bands")
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if not re.fullmatch("0|[1-9a-f][0-9a-f]*", name):
                self.problems.append(f"checking {path}: not the name of a band")
                continue
            band, length = int(name, 16), os.path.getsize(path)
            if length > self.band_size or length % self.header.block:
                raise Failure(f"reading {path}: {length} bytes are more than a band or no whole blocks")
            if band * self.band_size >= self.size:
                self.problems.append(f"checking {path}: the band lies behind the end of the device")
            self.bands[band] = path

    def read_plist(self):
        for name in ("Info.plist", "Info.bckup"):
            path = os.path.join(self.image, name)
            try:
                with open(path, "rb") as file:
                    info = plistlib.load(file)
                if info["diskimage-bundle-type"] != "com.apple.diskimage.sparsebundle":
                    raise ValueError("it is not of a sparse bundle")
                if info["bundle-backingstore-version"] not in (1, 2):
                    raise ValueError(f"backing-store version {info['bundle-backingstore-version']}")
                if info["size"] < 0 or info["band-size"] <= 0 or info["band-size"] % self.header.block:
                    raise ValueError(f"size {info['size']}, band-size {info['band-size']}")
                if info["bundle-backingstore-version"] == 2:
                    print(f"{path}: backing-store version 2 is read like 1, without mapped/", file=sys.stderr)
                return info
            except Exception as error:  # whatever is wrong with the first, the second may do
                cause = f"missing key {error}" if isinstance(error, KeyError) else getattr(error, "strerror", error)
                self.problems.append(f"reading {path}: {cause}")
        raise Failure("\n".join(self.problems))

    def chunks(self, start=0, end=None):
        """Yields (offset, length, plaintext), plaintext None for zeros; start has to begin a block."""
        end = self.size if end is None else end
        while start < end:
            band, within = divmod(start, self.band_size)
            want = min(CHUNK, self.band_size - within, end - start)
            padded = -(-want // self.header.block) * self.header.block
            data = b""
            if band in self.bands:
                with open(self.bands[band], "rb") as file:
                    file.seek(self.start + within)
                    data = file.read(padded)
            if not all_zero(data):
                data = self.decrypt(data + bytes(padded - len(data)), within // self.header.block)
            yield start, want, None if all_zero(data) else data[:want]
            start += want

    def decrypt(self, data, number):
        """Decrypts blocks, the first of which has the given number in its band (8.4)."""
        block, zero = self.header.block, bytes(self.header.block)
        # One CBC run over all blocks is right but for the first 16 bytes of each block, which it chains
        # to the block before instead of the block's own IV.
        plain = bytearray(Cipher(algorithms.AES(self.key), modes.CBC(bytes(16))).decryptor().update(data))
        before = bytes(16)
        for at in range(0, len(data), block):
            if data[at:at + block] == zero:  # never written (8.5)
                plain[at:at + block] = zero
            else:
                iv = self.hmac.copy()
                iv.update((number + at // block & 0xFFFFFFFF).to_bytes(4, "big"))
                mask = int.from_bytes(before, "big") ^ int.from_bytes(iv.digest()[:16], "big")
                plain[at:at + 16] = (int.from_bytes(plain[at:at + 16], "big") ^ mask).to_bytes(16, "big")
            before = data[at + block - 16:at + block]
        return bytes(plain)

    def read(self, offset, length):
        end = min(offset + length, self.size)
        first = offset // self.header.block * self.header.block
        parts = [bytes(size) if data is None else data for _, size, data in self.chunks(first, end)]
        return b"".join(parts)[offset - first:]

    def container(self):
        """Names the container that the decrypted data is, if any."""
        if self.read(0, 4) == b"sprs":
            return "a sparse image"
        if self.size >= SECTOR and self.read(self.size - SECTOR, 4) == b"koly":
            return "a UDIF file"
        return None


def sha256(device):
    digest, zeros = hashlib.sha256(), bytes(CHUNK)
    for _, length, data in device.chunks():
        digest.update(zeros[:length] if data is None else data)
    print(digest.hexdigest())


def write_raw(device, path):
    if os.path.exists(path) and os.path.samefile(path, device.image):
        raise Failure(f"writing {path}: it is the image")
    try:
        with open(path, "wb") as out:
            for offset, _, data in device.chunks():
                for at in range(0, len(data or b""), HOLE):
                    piece = data[at:at + HOLE]
                    if not all_zero(piece):
                        out.seek(offset + at)
                        out.write(piece)
            out.truncate(device.size)
    except OSError as error:
        if error.filename not in (None, path):
            raise  # of the image
        raise Failure(f"writing {path}: {error.strerror}")


def check(device):
    kind = device.container()
    if kind == "a UDIF file":
        raise Failure(f"checking {device.image}: the decrypted data is a UDIF file, whose device is not decoded here")
    checker = Checker(SparseImage(device) if kind else device)
    checker.run()
    problems = device.problems + checker.problems
    if problems:
        raise Failure("\n".join(problems))


def read_passphrase(everything):
    if everything:
        return sys.stdin.buffer.read().partition(b"\0")[0]
    if sys.stdin.isatty():
        return getpass.getpass("passphrase: ").encode()
    return sys.stdin.buffer.readline().rstrip(b"\r\n")


def run(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image")
    parser.add_argument("--passphrase-stdin", action="store_true", help="all of stdin is the passphrase")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--sha256", action="store_true", help="print the sum of the decrypted data")
    action.add_argument("--raw", metavar="OUT", help="write the decrypted data, with holes for zeros")
    parser.add_argument("--check", action="store_true", help="check partition tables and file system signatures")
    options = parser.parse_args(arguments)
    device = Encrypted(options.image, lambda: read_passphrase(options.passphrase_stdin))
    kind = device.container()
    if kind and not options.check:
        print(f"{options.image}: the decrypted data is {kind} and is taken as it is", file=sys.stderr)
    if options.sha256:
        sha256(device)
    elif options.raw:
        write_raw(device, options.raw)
    if options.check:
        check(device)


def main():
    image = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "image")
    try:
        run(sys.argv[1:])
    except Failure as failure:
        print(failure, file=sys.stderr)
        return failure.status
    except OSError as error:
        print(f"reading {error.filename or image}: {error.strerror}", file=sys.stderr)
        return 1
    except struct.error as error:
        print(f"reading {image}: a structure is cut off: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
