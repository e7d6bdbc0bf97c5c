#include "textflag.h"

// HMAC-SHA1 of block numbers with AVX-512: thirty-two at once, one in each 32-bit element of two groups. Both messages are
// one block of SHA-1 behind the states that the key gives: four bytes of number and padding, then twenty bytes of digest
// and padding.
//
// A round waits for a rotation and an addition of the round before it. Within four cycles, which these two take on Zen 5,
// sixteen instructions can start, and a round of one group has eleven: so two groups go side by side. The schedule of
// the first, A, has the registers Z16 to Z31; that of the second, B, lies in the frame, of which two loads and a store in
// a cycle take nothing from the arithmetic.

// Element 4i+j of counters is 4j+i: then a transposition inside the quarters of a register, which is all that the
// unpack instructions do, leaves the IVs in order.
DATA counters<>+0x00(SB)/4, $0
DATA counters<>+0x04(SB)/4, $4
DATA counters<>+0x08(SB)/4, $8
DATA counters<>+0x0c(SB)/4, $12
DATA counters<>+0x10(SB)/4, $1
DATA counters<>+0x14(SB)/4, $5
DATA counters<>+0x18(SB)/4, $9
DATA counters<>+0x1c(SB)/4, $13
DATA counters<>+0x20(SB)/4, $2
DATA counters<>+0x24(SB)/4, $6
DATA counters<>+0x28(SB)/4, $10
DATA counters<>+0x2c(SB)/4, $14
DATA counters<>+0x30(SB)/4, $3
DATA counters<>+0x34(SB)/4, $7
DATA counters<>+0x38(SB)/4, $11
DATA counters<>+0x3c(SB)/4, $15
GLOBL counters<>(SB), RODATA|NOPTR, $64

// swap reverses the bytes of each word.
DATA swap<>+0x00(SB)/8, $0x0405060700010203
DATA swap<>+0x08(SB)/8, $0x0c0d0e0f08090a0b
GLOBL swap<>(SB), RODATA|NOPTR, $16

// constants are the four K of SHA-1, the padding bit, the two lengths in bits, and the steps of the counters.
DATA constants<>+0x00(SB)/4, $0x5a827999
DATA constants<>+0x04(SB)/4, $0x6ed9eba1
DATA constants<>+0x08(SB)/4, $0x8f1bbcdc
DATA constants<>+0x0c(SB)/4, $0xca62c1d6
DATA constants<>+0x10(SB)/4, $0x80000000
DATA constants<>+0x14(SB)/4, $544
DATA constants<>+0x18(SB)/4, $672
DATA constants<>+0x1c(SB)/4, $16
DATA constants<>+0x20(SB)/4, $32
GLOBL constants<>(SB), RODATA|NOPTR, $36

// CHOOSE, PARITY and MAJORITY are the truth tables of the functions of b, c and d.
#define CHOOSE $0xca
#define PARITY $0x96
#define MAJORITY $0xe8

// STEP is one round of one group but for adding the word: Z15 is K, t and u are free.
#define STEP(fn, t, u, a, b, c, d, e) \
	VMOVDQA64 b, t; \
	VPTERNLOGD fn, d, c, t; \
	VPADDD Z15, e, e; \
	VPROLD $5, a, u; \
	VPADDD t, e, e; \
	VPROLD $30, b, b; \
	VPADDD u, e, e

// BOTH0 to BOTH4 are a round of both groups, by where a stands: A has its state in Z0 to Z4, B in Z5 to Z9.
#define BOTH0(fn) STEP(fn, Z10, Z11, Z0, Z1, Z2, Z3, Z4); STEP(fn, Z12, Z13, Z5, Z6, Z7, Z8, Z9)
#define BOTH1(fn) STEP(fn, Z10, Z11, Z4, Z0, Z1, Z2, Z3); STEP(fn, Z12, Z13, Z9, Z5, Z6, Z7, Z8)
#define BOTH2(fn) STEP(fn, Z10, Z11, Z3, Z4, Z0, Z1, Z2); STEP(fn, Z12, Z13, Z8, Z9, Z5, Z6, Z7)
#define BOTH3(fn) STEP(fn, Z10, Z11, Z2, Z3, Z4, Z0, Z1); STEP(fn, Z12, Z13, Z7, Z8, Z9, Z5, Z6)
#define BOTH4(fn) STEP(fn, Z10, Z11, Z1, Z2, Z3, Z4, Z0); STEP(fn, Z12, Z13, Z6, Z7, Z8, Z9, Z5)

// WORD adds a word of the message to e of both groups, A's from w, B's from the frame.
#define WORD(w, at, eA, eB) \
	VPADDD w, eA, eA; \
	VPADDD (at*64)(R12), eB, eB

// MIXn make a word of both schedules from n words before it and add it to e. Of the sixteen that SHA-1 mixes by four, the
// words 6 to 14 are zero in both messages.
#define TURN(w, at, eA, eB) \
	VPROLD $1, w, w; \
	VPROLD $1, Z14, Z14; \
	VPADDD w, eA, eA; \
	VMOVDQA64 Z14, (at*64)(R12); \
	VPADDD Z14, eB, eB
#define MIX1(w, at, w1, at1, eA, eB) \
	VMOVDQA64 w1, w; \
	VMOVDQA64 (at1*64)(R12), Z14; \
	TURN(w, at, eA, eB)
#define MIX2(w, at, w1, at1, w2, at2, eA, eB) \
	VPXORD w2, w1, w; \
	VMOVDQA64 (at1*64)(R12), Z14; \
	VPXORD (at2*64)(R12), Z14, Z14; \
	TURN(w, at, eA, eB)
#define MIX3(w, at, w1, at1, w2, at2, w3, at3, eA, eB) \
	VPXORD w2, w1, w; \
	VMOVDQA64 (at1*64)(R12), Z14; \
	VPXORD (at2*64)(R12), Z14, Z14; \
	VPXORD w3, w, w; \
	VPXORD (at3*64)(R12), Z14, Z14; \
	TURN(w, at, eA, eB)
#define MIX4(w, at, w1, at1, w2, at2, w3, at3, eA, eB) \
	VPTERNLOGD PARITY, w1, w2, w; \
	VMOVDQA64 (at*64)(R12), Z14; \
	VMOVDQA64 (at1*64)(R12), Z13; \
	VPTERNLOGD PARITY, (at2*64)(R12), Z13, Z14; \
	VPXORD w3, w, w; \
	VPXORD (at3*64)(R12), Z14, Z14; \
	TURN(w, at, eA, eB)

// PUT writes the IVs whose words are in a to d at off.
#define PUT(a, b, c, d, off) \
	VPUNPCKLDQ b, a, Z16; \
	VPUNPCKHDQ b, a, Z17; \
	VPUNPCKLDQ d, c, Z18; \
	VPUNPCKHDQ d, c, Z19; \
	VPUNPCKLQDQ Z18, Z16, Z20; \
	VPUNPCKHQDQ Z18, Z16, Z21; \
	VPUNPCKLQDQ Z19, Z17, Z22; \
	VPUNPCKHQDQ Z19, Z17, Z23; \
	VPSHUFB Z12, Z20, Z20; \
	VPSHUFB Z12, Z21, Z21; \
	VPSHUFB Z12, Z22, Z22; \
	VPSHUFB Z12, Z23, Z23; \
	VMOVDQU64 Z20, (off+0)(DI); \
	VMOVDQU64 Z21, (off+64)(DI); \
	VMOVDQU64 Z22, (off+128)(DI); \
	VMOVDQU64 Z23, (off+192)(DI)

// func fillAVX512(dst *byte, groups int, first uint32, states *[2][5]uint32)
// Writes groups times thirty-two IVs. The frame holds B's schedule and A's numbers, from the first multiple of 64 on; it is
// wiped at the end, for the schedule of the outer message tells the inner digests.
TEXT ·fillAVX512(SB), 0, $1152-32
	MOVQ dst+0(FP), DI
	MOVQ groups+8(FP), CX
	MOVQ states+24(FP), SI
	LEAQ constants<>(SB), R9
	LEAQ 63(SP), R12
	ANDQ $~63, R12
	MOVL first+16(FP), R10
	VPBROADCASTD R10, Z16
	VPADDD counters<>(SB), Z16, Z16

group:
	// The inner message: the number, and the padding.
	MOVQ SI, R8
	VMOVDQA64 Z16, 1024(R12)
	VPADDD.BCST 28(R9), Z16, Z5
	VPBROADCASTD 16(R9), Z17
	VPXORD Z18, Z18, Z18
	VPXORD Z19, Z19, Z19
	VPXORD Z20, Z20, Z20
	VPXORD Z21, Z21, Z21
	VPBROADCASTD 20(R9), Z31
	VMOVDQA64 Z5, 0(R12)
	VMOVDQA64 Z17, 64(R12)
	VMOVDQA64 Z18, 128(R12)
	VMOVDQA64 Z18, 192(R12)
	VMOVDQA64 Z18, 256(R12)
	VMOVDQA64 Z18, 320(R12)
	VMOVDQA64 Z31, 960(R12)

hash:
	VPBROADCASTD 0(R8), Z0
	VPBROADCASTD 4(R8), Z1
	VPBROADCASTD 8(R8), Z2
	VPBROADCASTD 12(R8), Z3
	VPBROADCASTD 16(R8), Z4
	VMOVDQA64 Z0, Z5
	VMOVDQA64 Z1, Z6
	VMOVDQA64 Z2, Z7
	VMOVDQA64 Z3, Z8
	VMOVDQA64 Z4, Z9

	VPBROADCASTD 0(R9), Z15
	WORD(Z16, 0, Z4, Z9)
	BOTH0(CHOOSE)
	WORD(Z17, 1, Z3, Z8)
	BOTH1(CHOOSE)
	WORD(Z18, 2, Z2, Z7)
	BOTH2(CHOOSE)
	WORD(Z19, 3, Z1, Z6)
	BOTH3(CHOOSE)
	WORD(Z20, 4, Z0, Z5)
	BOTH4(CHOOSE)
	WORD(Z21, 5, Z4, Z9)
	BOTH0(CHOOSE)
	BOTH1(CHOOSE)
	BOTH2(CHOOSE)
	BOTH3(CHOOSE)
	BOTH4(CHOOSE)
	BOTH0(CHOOSE)
	BOTH1(CHOOSE)
	BOTH2(CHOOSE)
	BOTH3(CHOOSE)
	BOTH4(CHOOSE)
	WORD(Z31, 15, Z4, Z9)
	BOTH0(CHOOSE)
	MIX2(Z16, 0, Z16, 0, Z18, 2, Z3, Z8)
	BOTH1(CHOOSE)
	MIX2(Z17, 1, Z17, 1, Z19, 3, Z2, Z7)
	BOTH2(CHOOSE)
	MIX3(Z18, 2, Z18, 2, Z20, 4, Z31, 15, Z1, Z6)
	BOTH3(CHOOSE)
	MIX3(Z19, 3, Z19, 3, Z21, 5, Z16, 0, Z0, Z5)
	BOTH4(CHOOSE)

	VPBROADCASTD 4(R9), Z15
	MIX2(Z20, 4, Z20, 4, Z17, 1, Z4, Z9)
	BOTH0(PARITY)
	MIX2(Z21, 5, Z21, 5, Z18, 2, Z3, Z8)
	BOTH1(PARITY)
	MIX1(Z22, 6, Z19, 3, Z2, Z7)
	BOTH2(PARITY)
	MIX2(Z23, 7, Z31, 15, Z20, 4, Z1, Z6)
	BOTH3(PARITY)
	MIX2(Z24, 8, Z16, 0, Z21, 5, Z0, Z5)
	BOTH4(PARITY)
	MIX2(Z25, 9, Z17, 1, Z22, 6, Z4, Z9)
	BOTH0(PARITY)
	MIX2(Z26, 10, Z18, 2, Z23, 7, Z3, Z8)
	BOTH1(PARITY)
	MIX2(Z27, 11, Z19, 3, Z24, 8, Z2, Z7)
	BOTH2(PARITY)
	MIX2(Z28, 12, Z20, 4, Z25, 9, Z1, Z6)
	BOTH3(PARITY)
	MIX3(Z29, 13, Z31, 15, Z21, 5, Z26, 10, Z0, Z5)
	BOTH4(PARITY)
	MIX3(Z30, 14, Z16, 0, Z22, 6, Z27, 11, Z4, Z9)
	BOTH0(PARITY)
	MIX4(Z31, 15, Z17, 1, Z23, 7, Z28, 12, Z3, Z8)
	BOTH1(PARITY)
	MIX4(Z16, 0, Z18, 2, Z24, 8, Z29, 13, Z2, Z7)
	BOTH2(PARITY)
	MIX4(Z17, 1, Z19, 3, Z25, 9, Z30, 14, Z1, Z6)
	BOTH3(PARITY)
	MIX4(Z18, 2, Z20, 4, Z26, 10, Z31, 15, Z0, Z5)
	BOTH4(PARITY)
	MIX4(Z19, 3, Z21, 5, Z27, 11, Z16, 0, Z4, Z9)
	BOTH0(PARITY)
	MIX4(Z20, 4, Z22, 6, Z28, 12, Z17, 1, Z3, Z8)
	BOTH1(PARITY)
	MIX4(Z21, 5, Z23, 7, Z29, 13, Z18, 2, Z2, Z7)
	BOTH2(PARITY)
	MIX4(Z22, 6, Z24, 8, Z30, 14, Z19, 3, Z1, Z6)
	BOTH3(PARITY)
	MIX4(Z23, 7, Z25, 9, Z31, 15, Z20, 4, Z0, Z5)
	BOTH4(PARITY)

	VPBROADCASTD 8(R9), Z15
	MIX4(Z24, 8, Z26, 10, Z16, 0, Z21, 5, Z4, Z9)
	BOTH0(MAJORITY)
	MIX4(Z25, 9, Z27, 11, Z17, 1, Z22, 6, Z3, Z8)
	BOTH1(MAJORITY)
	MIX4(Z26, 10, Z28, 12, Z18, 2, Z23, 7, Z2, Z7)
	BOTH2(MAJORITY)
	MIX4(Z27, 11, Z29, 13, Z19, 3, Z24, 8, Z1, Z6)
	BOTH3(MAJORITY)
	MIX4(Z28, 12, Z30, 14, Z20, 4, Z25, 9, Z0, Z5)
	BOTH4(MAJORITY)
	MIX4(Z29, 13, Z31, 15, Z21, 5, Z26, 10, Z4, Z9)
	BOTH0(MAJORITY)
	MIX4(Z30, 14, Z16, 0, Z22, 6, Z27, 11, Z3, Z8)
	BOTH1(MAJORITY)
	MIX4(Z31, 15, Z17, 1, Z23, 7, Z28, 12, Z2, Z7)
	BOTH2(MAJORITY)
	MIX4(Z16, 0, Z18, 2, Z24, 8, Z29, 13, Z1, Z6)
	BOTH3(MAJORITY)
	MIX4(Z17, 1, Z19, 3, Z25, 9, Z30, 14, Z0, Z5)
	BOTH4(MAJORITY)
	MIX4(Z18, 2, Z20, 4, Z26, 10, Z31, 15, Z4, Z9)
	BOTH0(MAJORITY)
	MIX4(Z19, 3, Z21, 5, Z27, 11, Z16, 0, Z3, Z8)
	BOTH1(MAJORITY)
	MIX4(Z20, 4, Z22, 6, Z28, 12, Z17, 1, Z2, Z7)
	BOTH2(MAJORITY)
	MIX4(Z21, 5, Z23, 7, Z29, 13, Z18, 2, Z1, Z6)
	BOTH3(MAJORITY)
	MIX4(Z22, 6, Z24, 8, Z30, 14, Z19, 3, Z0, Z5)
	BOTH4(MAJORITY)
	MIX4(Z23, 7, Z25, 9, Z31, 15, Z20, 4, Z4, Z9)
	BOTH0(MAJORITY)
	MIX4(Z24, 8, Z26, 10, Z16, 0, Z21, 5, Z3, Z8)
	BOTH1(MAJORITY)
	MIX4(Z25, 9, Z27, 11, Z17, 1, Z22, 6, Z2, Z7)
	BOTH2(MAJORITY)
	MIX4(Z26, 10, Z28, 12, Z18, 2, Z23, 7, Z1, Z6)
	BOTH3(MAJORITY)
	MIX4(Z27, 11, Z29, 13, Z19, 3, Z24, 8, Z0, Z5)
	BOTH4(MAJORITY)

	VPBROADCASTD 12(R9), Z15
	MIX4(Z28, 12, Z30, 14, Z20, 4, Z25, 9, Z4, Z9)
	BOTH0(PARITY)
	MIX4(Z29, 13, Z31, 15, Z21, 5, Z26, 10, Z3, Z8)
	BOTH1(PARITY)
	MIX4(Z30, 14, Z16, 0, Z22, 6, Z27, 11, Z2, Z7)
	BOTH2(PARITY)
	MIX4(Z31, 15, Z17, 1, Z23, 7, Z28, 12, Z1, Z6)
	BOTH3(PARITY)
	MIX4(Z16, 0, Z18, 2, Z24, 8, Z29, 13, Z0, Z5)
	BOTH4(PARITY)
	MIX4(Z17, 1, Z19, 3, Z25, 9, Z30, 14, Z4, Z9)
	BOTH0(PARITY)
	MIX4(Z18, 2, Z20, 4, Z26, 10, Z31, 15, Z3, Z8)
	BOTH1(PARITY)
	MIX4(Z19, 3, Z21, 5, Z27, 11, Z16, 0, Z2, Z7)
	BOTH2(PARITY)
	MIX4(Z20, 4, Z22, 6, Z28, 12, Z17, 1, Z1, Z6)
	BOTH3(PARITY)
	MIX4(Z21, 5, Z23, 7, Z29, 13, Z18, 2, Z0, Z5)
	BOTH4(PARITY)
	MIX4(Z22, 6, Z24, 8, Z30, 14, Z19, 3, Z4, Z9)
	BOTH0(PARITY)
	MIX4(Z23, 7, Z25, 9, Z31, 15, Z20, 4, Z3, Z8)
	BOTH1(PARITY)
	MIX4(Z24, 8, Z26, 10, Z16, 0, Z21, 5, Z2, Z7)
	BOTH2(PARITY)
	MIX4(Z25, 9, Z27, 11, Z17, 1, Z22, 6, Z1, Z6)
	BOTH3(PARITY)
	MIX4(Z26, 10, Z28, 12, Z18, 2, Z23, 7, Z0, Z5)
	BOTH4(PARITY)
	MIX4(Z27, 11, Z29, 13, Z19, 3, Z24, 8, Z4, Z9)
	BOTH0(PARITY)
	MIX4(Z28, 12, Z30, 14, Z20, 4, Z25, 9, Z3, Z8)
	BOTH1(PARITY)
	MIX4(Z29, 13, Z31, 15, Z21, 5, Z26, 10, Z2, Z7)
	BOTH2(PARITY)
	MIX4(Z30, 14, Z16, 0, Z22, 6, Z27, 11, Z1, Z6)
	BOTH3(PARITY)
	MIX4(Z31, 15, Z17, 1, Z23, 7, Z28, 12, Z0, Z5)
	BOTH4(PARITY)

	VPADDD.BCST 0(R8), Z0, Z0
	VPADDD.BCST 0(R8), Z5, Z5
	VPADDD.BCST 4(R8), Z1, Z1
	VPADDD.BCST 4(R8), Z6, Z6
	VPADDD.BCST 8(R8), Z2, Z2
	VPADDD.BCST 8(R8), Z7, Z7
	VPADDD.BCST 12(R8), Z3, Z3
	VPADDD.BCST 12(R8), Z8, Z8
	VPADDD.BCST 16(R8), Z4, Z4
	VPADDD.BCST 16(R8), Z9, Z9
	CMPQ R8, SI
	JNE  write

	// The outer message: the digest, and the padding.
	LEAQ 20(SI), R8
	VMOVDQA64 Z0, Z16
	VMOVDQA64 Z5, 0(R12)
	VMOVDQA64 Z1, Z17
	VMOVDQA64 Z6, 64(R12)
	VMOVDQA64 Z2, Z18
	VMOVDQA64 Z7, 128(R12)
	VMOVDQA64 Z3, Z19
	VMOVDQA64 Z8, 192(R12)
	VMOVDQA64 Z4, Z20
	VMOVDQA64 Z9, 256(R12)
	VPBROADCASTD 16(R9), Z21
	VPBROADCASTD 24(R9), Z31
	VMOVDQA64 Z21, 320(R12)
	VMOVDQA64 Z31, 960(R12)
	JMP hash

write:
	VBROADCASTI32X4 swap<>(SB), Z12
	PUT(Z0, Z1, Z2, Z3, 0)
	PUT(Z5, Z6, Z7, Z8, 256)
	VMOVDQA64 1024(R12), Z16
	VPADDD.BCST 32(R9), Z16, Z16
	ADDQ $512, DI
	DECQ CX
	JNE  group

	VPXORD Z0, Z0, Z0
	VMOVDQA64 Z0, 0(R12)
	VMOVDQA64 Z0, 64(R12)
	VMOVDQA64 Z0, 128(R12)
	VMOVDQA64 Z0, 192(R12)
	VMOVDQA64 Z0, 256(R12)
	VMOVDQA64 Z0, 320(R12)
	VMOVDQA64 Z0, 384(R12)
	VMOVDQA64 Z0, 448(R12)
	VMOVDQA64 Z0, 512(R12)
	VMOVDQA64 Z0, 576(R12)
	VMOVDQA64 Z0, 640(R12)
	VMOVDQA64 Z0, 704(R12)
	VMOVDQA64 Z0, 768(R12)
	VMOVDQA64 Z0, 832(R12)
	VMOVDQA64 Z0, 896(R12)
	VMOVDQA64 Z0, 960(R12)
	VZEROUPPER
	RET
