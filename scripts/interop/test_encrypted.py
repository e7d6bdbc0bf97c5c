"""Tests encrypted.py on images of Apple's tools (../shared/images) and on images made here.

Usage: python3 -m unittest discover -s scripts/interop
"""
import contextlib
import hashlib
import hmac
import io
import os
import plistlib
import struct
import tempfile
import unittest
import zlib
from unittest import mock

try:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    import encrypted
except ImportError as error:
    raise unittest.SkipTest(f"the package cryptography is missing: {error}")

IMAGES = os.path.join(os.path.dirname(__file__), "../../../shared/images")
KEY, HMAC_KEY = bytes(range(32)), bytes(range(100, 120))


def call(passphrase, *arguments):
    """Returns exit status, stdout and stderr of encrypted.py."""
    stdin = mock.Mock(buffer=io.BytesIO(passphrase))
    out, err = io.StringIO(), io.StringIO()
    argv = ["encrypted.py", *arguments, "--passphrase-stdin"]
    with mock.patch("sys.stdin", stdin), mock.patch("sys.argv", argv):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = encrypted.main()
    return status, out.getvalue(), err.getvalue()


def header(passphrase, bits, wrap, block, length):
    kek = hashlib.pbkdf2_hmac("sha1", passphrase, b"s" * 20, 1000, 24)
    cipher = (Cipher(encrypted.TripleDES(kek), modes.CBC(b"i" * 8)) if wrap == encrypted.TRIPLE_DES
              else Cipher(algorithms.AES(kek), modes.CBC(b"i" * 8 + bytes(8))))
    blob = cipher.encryptor().update(KEY[:bits // 8] + HMAC_KEY + b"CKIE\0" + b"\7" * 7)
    offset = 0x1E000 if block == 4096 else 0x1DE00
    raw = b"encrcdsa" + struct.pack(">7I", 2, 16, 5, encrypted.AES, bits, 0x5B, 160) + bytes(16)
    raw += struct.pack(">IQQIIQQ", block, length, offset, 1, 1, 0x60, 616)
    raw += struct.pack(">4I32sI32s", 103, 0, 1000, 20, b"s" * 20, 8, b"i" * 8)
    raw += struct.pack(">5I512s", 192, wrap, 7, 6, len(blob), blob)
    return raw.ljust(offset, b"\0")


def encrypt(data, bits, block):
    """Encrypts block by block as in 8.4; blocks of zeros are never written."""
    parts = []
    for number in range(-(-len(data) // block)):
        plain = data[number * block:(number + 1) * block].ljust(block, b"\0")
        iv = hmac.digest(HMAC_KEY, struct.pack(">I", number), "sha1")[:16]
        encryptor = Cipher(algorithms.AES(KEY[:bits // 8]), modes.CBC(iv)).encryptor()
        parts.append(encryptor.update(plain) if any(plain) else plain)
    return b"".join(parts)


def gpt_disk(sectors):
    """A device with a GPT and a partition in sectors 40..sectors-41 that begins with an APFS signature."""
    disk = bytearray(sectors * 512)
    entry = bytes.fromhex("ef57347c0000aa11aa1100306543ecac") + b"p" * 16 + struct.pack("<QQ", 40, sectors - 41)
    table = entry.ljust(128 * 128, b"\0")
    for mine, other, at in ((1, sectors - 1, 2), (sectors - 1, 1, sectors - 33)):
        raw = b"EFI PART" + struct.pack("<IIIIQQQQ16sQIII", 0x10000, 92, 0, 0, mine, other, 34, sectors - 34,
                                        b"d" * 16, at, 128, 128, zlib.crc32(table))
        raw = raw[:16] + struct.pack("<I", zlib.crc32(raw)) + raw[20:]
        disk[mine * 512:mine * 512 + 92] = raw
        disk[at * 512:at * 512 + len(table)] = table
    disk[446:462] = struct.pack("<4s4sII", bytes(4), b"\xee\0\0\0", 1, sectors - 1)
    disk[510:512] = b"\x55\xaa"
    disk[40 * 512 + 32:40 * 512 + 36] = b"NXSB"
    return bytes(disk)


class EncryptedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def bundle(self, data, band_size, block=512):
        path = os.path.join(self.folder, "x.sparsebundle")
        os.makedirs(os.path.join(path, "bands"))
        info = {"diskimage-bundle-type": "com.apple.diskimage.sparsebundle", "bundle-backingstore-version": 1,
                "size": len(data), "band-size": band_size}
        with open(os.path.join(path, "Info.plist"), "wb") as file:
            plistlib.dump(info, file)
        with open(os.path.join(path, "token"), "wb") as file:
            file.write(header(b"pass", 256, encrypted.AES, block, 0))
        for number in range(-(-len(data) // band_size)):
            band = data[number * band_size:(number + 1) * band_size].rstrip(b"\0")
            if band:
                with open(os.path.join(path, "bands", f"{number:x}"), "wb") as file:
                    file.write(encrypt(band, 256, block))
        return path

    def file(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_apple_images(self):
        # The first sum is of the UDIF file inside: the README has the one of its device.
        for name, passphrase, want in (
                ("dmgwiz/input_aes256.dmg", b"test123",
                 "40cc90f2027c9779750193368553744986e251231b3a6a7d7a5ec7827a7dca01"),
                ("fstool/encrcdsa_aes128_fat12_hunter2.dmg", b"hunter2",
                 "cee60f919a4532418d3790a65f00683fd36bbf0634d414502de81a677aded42b")):
            path = os.path.join(IMAGES, name)
            if not os.path.exists(path):
                self.skipTest(f"{path} is missing")
            with self.subTest(name):
                self.assertEqual(call(passphrase, path, "--sha256")[:2], (0, want + "\n"))

    def test_single_files(self):
        data = (os.urandom(5000) + bytes(9000)) * 200
        data = data[:-9123]  # no whole blocks
        want = hashlib.sha256(data).hexdigest()
        for bits in (128, 256):
            for wrap in (encrypted.TRIPLE_DES, encrypted.AES):
                for block in (512, 4096):
                    with self.subTest(bits=bits, wrap=wrap, block=block):
                        raw = header(b"p\n", bits, wrap, block, len(data)) + encrypt(data, bits, block)
                        path = self.file("x.dmg", raw)
                        self.assertEqual(call(b"p\n", path, "--sha256"), (0, want + "\n", ""))
                        self.assertEqual(call(b"p", path)[0], 3)

    def test_bundle(self):
        data = os.urandom(5000) + bytes(1 << 20) + os.urandom(3 << 20) + bytes(3 << 20) + os.urandom(512 * 9)
        for block in (512, 4096):
            with self.subTest(block=block), tempfile.TemporaryDirectory() as self.folder:
                path = self.bundle(data, 3 << 19, block)
                self.assertFalse(os.path.exists(os.path.join(path, "bands", "3")))
                out = os.path.join(self.folder, "out")
                self.assertEqual(call(b"pass", path, "--raw", out), (0, "", ""))
                with open(out, "rb") as file:
                    self.assertEqual(file.read(), data)
                self.assertLess(os.stat(out).st_blocks * 512, len(data) - (2 << 20))

    def test_check(self):
        disk = gpt_disk(4096)
        status, out, err = call(b"pass", self.bundle(disk, 1 << 20), "--check")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("partition 1: sectors 40..4055, type Apple_APFS, file system APFS", out)
        for at, message in ((510, "protective MBR: no signature"), (512 + 40, "primary GPT: header CRC"),
                            (1024 + 200, "primary GPT: table CRC"), (4095 * 512, "backup GPT: no signature"),
                            (4064 * 512, "backup GPT: table CRC"), (20480 + 32, "its file system is not known")):
            with self.subTest(message):
                broken = disk[:at] + bytes([disk[at] ^ 1]) + disk[at + 1:]
                raw = header(b"pass", 128, encrypted.AES, 512, len(broken)) + encrypt(broken, 128, 512)
                status, _, err = call(b"pass", self.file("x.dmg", raw), "--check")
                self.assertEqual(status, 1)
                self.assertIn(message, err)

    def test_sparse_image(self):
        disk = gpt_disk(4096)
        node = b"sprs" + struct.pack(">IIIIQQ", 3, 2048, 1, 4096, 0, 4096) + bytes(28) + struct.pack(">II", 2, 1)
        node = node.ljust(4096, b"\0") + disk[1 << 20:] + disk[:1 << 20]
        raw = header(b"pass", 128, encrypted.AES, 512, len(node)) + encrypt(node, 128, 512)
        status, out, err = call(b"pass", self.file("x.sparseimage", raw), "--check")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("file system APFS", out)
        self.assertIn("is a sparse image", call(b"pass", os.path.join(self.folder, "x.sparseimage"), "--sha256")[2])

    def test_refusals(self):
        raw = header(b"pass", 128, encrypted.AES, 512, 1024) + bytes(1024)
        for data, message in ((bytes(512), "it is not encrypted"), (raw[:-1], "its header wants"),
                              (raw[:8] + b"\0\0\0\3" + raw[12:], "version is 0x3, not 0x2"),
                              (bytes(512) + b"cdsaencr", "cdsaencr v1")):
            with self.subTest(message):
                status, _, err = call(b"pass", self.file("x.dmg", data))
                self.assertEqual(status, 1)
                self.assertIn(message, err)


if __name__ == "__main__":
    unittest.main()
