#!/usr/bin/env python3
"""Makes the images of this folder from the description of the formats alone, with another cryptographic library.

Needs the module "cryptography" (pip install cryptography). Run it in this folder; the same bytes come out every time.
"""
import gzip
import hashlib
import hmac
import json
import struct
import warnings

warnings.simplefilter("ignore")
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:
    TripleDES = algorithms.TripleDES

V1_IV = bytes.fromhex("4adda22c79e82105")


def stream(label, n):
    out, i = b"", 0
    while len(out) < n:
        out += hashlib.sha256(f"{label} {i}".encode()).digest()
        i += 1
    return out[:n]


def cbc(algorithm, iv, data):
    e = Cipher(algorithm, modes.CBC(iv)).encryptor()
    return e.update(data) + e.finalize()


def pad(data, size):
    n = size - len(data) % size
    return data + bytes([n]) * n


def encrypt(plain, aes, mac, block, holes=(), short=False):
    out = b""
    for k in range((len(plain) + block - 1) // block):
        part = plain[k * block : (k + 1) * block]
        if not short:
            part = part.ljust(block, b"\x5a")  # the filler means nothing
        if k in holes:
            out += bytes(block)
            continue
        iv = hmac.new(mac, struct.pack(">I", k), "sha1").digest()[:16]
        out += cbc(algorithms.AES(aes), iv, part)
    return out


def record(name, aes, mac, passphrase, iterations, wrap):
    salt, iv = stream(name + " salt", 20), stream(name + " iv", 8)
    kek = hashlib.pbkdf2_hmac("sha1", passphrase, salt, iterations, 24)
    secret = aes + mac + b"CKIE\0"
    if wrap == "3des-ede":
        blob, code = cbc(TripleDES(kek), iv, pad(secret, 8)), 17
    else:
        blob, code = cbc(algorithms.AES(kek), iv + bytes(8), pad(secret, 16)), 0x80000001
    out = struct.pack(">4I", 103, 0, iterations, 20) + salt.ljust(32, b"\0")
    out += struct.pack(">I", 8) + iv.ljust(32, b"\0")
    out += struct.pack(">5I", 192, code, 7, 6, len(blob)) + blob.ljust(512, b"\0")
    assert len(out) == 616
    return out


def v2(name, bits, block, offset, length, records):
    table, body, at = b"", b"", 0x4C + 20 * len(records)
    for kind, content in records:
        table += struct.pack(">IQQ", kind, at, len(content))
        body += content
        at += len(content)
    head = b"encrcdsa" + struct.pack(">7I", 2, 16, 5, 0x80000001, bits, 0x5B, 160)
    head += stream(name + " uuid", 16) + struct.pack(">IQQI", block, length, offset, len(records))
    return (head + table + body).ljust(offset, b"\0")


def v1_wrap(kek, key, iv):
    inner = iv + cbc(TripleDES(kek), iv, pad(bytes(4) + key, 8))
    return cbc(TripleDES(kek), V1_IV, pad(inner[::-1], 8))


def v1(name, bits, aes, mac, passphrase, length):
    salt = stream(name + " salt", 20)
    kek = hashlib.pbkdf2_hmac("sha1", passphrase, salt, 1000, 24)
    out = stream(name + " uuid", 16)
    out += struct.pack(">6I", 4096, 17, 7, 6, 192, 8) + struct.pack(">4I", 103, 0, 1000, 20)
    out += salt.ljust(32, b"\0") + struct.pack(">2I", 16, 5)
    for i, (code, key_bits, key) in enumerate([(0x80000001, bits, aes), (91, 160, mac), (91, 160, mac)]):
        blob = v1_wrap(kek, key, stream(f"{name} slot {i}", 8))
        out += struct.pack(">2I", code, key_bits) + bytes(32) + struct.pack(">I", len(blob)) + blob.ljust(256, b"\0")
    out += struct.pack(">I", 0) + bytes(256) + struct.pack(">QI", length, 1) + b"cdsaencr"
    assert len(out) == 1276
    return out


manifest = []


def write(name, content, passphrase, bits, block, wrap, plain, **more):
    with open(name + ".gz", "wb") as f:
        f.write(gzip.compress(content, 9, mtime=0))
    manifest.append({
        "name": name, "passphrase": passphrase.decode(), "bits": bits, "block": block, "wrap": wrap,
        "length": len(plain), "sha256": hashlib.sha256(plain).hexdigest(), **more,
    })


def image(name, bits, block, wrap, iterations, passphrase, length, others=(), holes=(), **more):
    aes, mac, plain = stream(name + " aes", bits // 8), stream(name + " mac", 20), stream(name + " data", length)
    for k in holes:
        plain = plain[: k * block] + bytes(len(plain[k * block : (k + 1) * block])) + plain[(k + 1) * block :]
    records = [(kind, f(aes, mac)) for kind, f in others]
    records.append((1, record(name, aes, mac, passphrase, iterations, wrap)))
    offset = 0x1DE00 if block == 512 else 0x1E000
    head = v2(name, bits, block, offset, length, records)
    write(name, head + encrypt(plain, aes, mac, block, holes), passphrase, bits, block, wrap, plain,
          version=2, iterations=iterations, records=len(records), **more)


def certificate(aes, mac):
    out = struct.pack(">I", 20) + stream("certificate", 20).ljust(32, b"\0")
    return out + struct.pack(">4I", 42, 10, 0, 256) + stream("rsa", 256).ljust(512, b"\0")


image("aes128-512-aes192", 128, 512, "aes-192", 1000, b"correct horse", 5000)
image("aes256-512-aes192", 256, 512, "aes-192", 3000, "pässwört\n".encode(), 20480)
image("aes128-4096-3des", 128, 4096, "3des-ede", 1000, b"hunter2", 10001)
image("aes256-4096-3des", 256, 4096, "3des-ede", 1000, b"x" * 100, 8192)
image("records", 256, 512, "3des-ede", 1000, b"second", 3000, others=[
    (2, certificate), (77, lambda a, m: b"of another kind, and kept"),
    (1, lambda a, m: record("first", a, m, b"first", 1200, "aes-192"))], also="first")
image("holes", 256, 512, "aes-192", 1000, b"sparse", 512 * 40, holes=[0, 3, 4, 5, 39], sparse=True)

for name, bits, length in [("v1-aes128", 128, 3 * 4096), ("v1-aes256", 256, 4096 + 512)]:
    aes, mac, plain = stream(name + " aes", bits // 8), stream(name + " mac", 20), stream(name + " data", length)
    body = encrypt(plain, aes, mac, 4096, short=True)
    write(name, body + v1(name, bits, aes, mac, b"old", len(body)), b"old", bits, 4096, "3des-ede", plain,
          version=1, iterations=1000, records=0)

with open("manifest.json", "w") as f:
    json.dump(manifest, f, indent=1, ensure_ascii=False)
    f.write("\n")
