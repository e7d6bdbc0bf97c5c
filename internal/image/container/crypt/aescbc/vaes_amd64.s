#include "textflag.h"

// AES-CBC with VAES on 512-bit registers: 32 AES blocks in flight, four in each of Z0 to Z7. The round keys stay in
// Z16 to Z30, each four times over; the last one is always in Z30.

#define ROUND32(OP, key) \
	OP key, Z0, Z0; \
	OP key, Z1, Z1; \
	OP key, Z2, Z2; \
	OP key, Z3, Z3; \
	OP key, Z4, Z4; \
	OP key, Z5, Z5; \
	OP key, Z6, Z6; \
	OP key, Z7, Z7

#define KEYS \
	VBROADCASTI32X4 0(AX), Z16; \
	VBROADCASTI32X4 16(AX), Z17; \
	VBROADCASTI32X4 32(AX), Z18; \
	VBROADCASTI32X4 48(AX), Z19; \
	VBROADCASTI32X4 64(AX), Z20; \
	VBROADCASTI32X4 80(AX), Z21; \
	VBROADCASTI32X4 96(AX), Z22; \
	VBROADCASTI32X4 112(AX), Z23; \
	VBROADCASTI32X4 128(AX), Z24; \
	VBROADCASTI32X4 144(AX), Z25; \
	VBROADCASTI32X4 (AX)(BX*1), Z30

// KEYS12 and KEYS14 are the further round keys of AES-192 and AES-256.
#define KEYS12 \
	VBROADCASTI32X4 160(AX), Z26; \
	VBROADCASTI32X4 176(AX), Z27

#define KEYS14 \
	VBROADCASTI32X4 192(AX), Z28; \
	VBROADCASTI32X4 208(AX), Z29

#define NINE32(OP) \
	ROUND32(OP, Z17); \
	ROUND32(OP, Z18); \
	ROUND32(OP, Z19); \
	ROUND32(OP, Z20); \
	ROUND32(OP, Z21); \
	ROUND32(OP, Z22); \
	ROUND32(OP, Z23); \
	ROUND32(OP, Z24); \
	ROUND32(OP, Z25)

// TRANSPOSE turns four lanes of four AES blocks, Z8 to Z11, into four steps of four lanes, and back.
#define TRANSPOSE \
	VSHUFI64X2 $0x44, Z9, Z8, Z12; \
	VSHUFI64X2 $0xee, Z9, Z8, Z13; \
	VSHUFI64X2 $0x44, Z11, Z10, Z14; \
	VSHUFI64X2 $0xee, Z11, Z10, Z15; \
	VSHUFI64X2 $0x88, Z14, Z12, Z8; \
	VSHUFI64X2 $0xdd, Z14, Z12, Z9; \
	VSHUFI64X2 $0x88, Z15, Z13, Z10; \
	VSHUFI64X2 $0xdd, Z15, Z13, Z11

// GATHER puts 64 bytes of each of four lanes, R9 bytes apart, into the four steps at R12, at off of each. The first lies
// at the offset from SI that the lanes say.
#define GATHER(off) \
	MOVQ (off/8)(R14), R11; \
	ADDQ SI, R11; \
	VMOVDQU64 (R11), Z8; \
	VMOVDQU64 (R11)(R9*1), Z9; \
	VMOVDQU64 (R11)(R9*2), Z10; \
	VMOVDQU64 (R11)(R10*1), Z11; \
	TRANSPOSE; \
	VMOVDQA64 Z8, (off+0)(R12); \
	VMOVDQA64 Z9, (off+512)(R12); \
	VMOVDQA64 Z10, (off+1024)(R12); \
	VMOVDQA64 Z11, (off+1536)(R12)

// SCATTER takes them back, to the same offset from DI.
#define SCATTER(off) \
	MOVQ (off/8)(R14), R11; \
	ADDQ DI, R11; \
	VMOVDQA64 (off+0)(R12), Z8; \
	VMOVDQA64 (off+512)(R12), Z9; \
	VMOVDQA64 (off+1024)(R12), Z10; \
	VMOVDQA64 (off+1536)(R12), Z11; \
	TRANSPOSE; \
	VMOVDQU64 Z8, (R11); \
	VMOVDQU64 Z9, (R11)(R9*1); \
	VMOVDQU64 Z10, (R11)(R9*2); \
	VMOVDQU64 Z11, (R11)(R10*1)

// CHAIN xors the next AES block of four lanes and the first round key into state.
#define CHAIN(off, state) \
	VPTERNLOGD $0x96, off(R13), Z16, state

// func encryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit, length int, lanes *[8]int)
// Encrypts length bytes, a multiple of 64, in each of 32 lanes: eight times four that lie unit bytes apart, from the offsets
// lanes of src and dst on. Every cache line is read once and written once; in between it lies in 2048 bytes of the frame,
// from the first multiple of 64 on. Of two fours with one offset the same is true as in encryptTwelve.
TEXT ·encryptVAES(SB), 0, $2112-64
	MOVQ rk+0(FP), AX
	MOVQ rounds+8(FP), BX
	MOVQ dst+16(FP), DI
	MOVQ src+24(FP), SI
	MOVQ ivs+32(FP), CX
	MOVQ unit+40(FP), R9
	MOVQ length+48(FP), DX
	MOVQ lanes+56(FP), R14
	LEAQ 63(SP), R12
	ANDQ $~63, R12
	SHLQ $4, BX
	LEAQ (R9)(R9*2), R10
	KEYS
	CMPQ BX, $160
	JEQ  encryptIVs
	KEYS12
	CMPQ BX, $192
	JEQ  encryptIVs
	KEYS14

encryptIVs:
	VMOVDQU64 0(CX), Z0
	VMOVDQU64 64(CX), Z1
	VMOVDQU64 128(CX), Z2
	VMOVDQU64 192(CX), Z3
	VMOVDQU64 256(CX), Z4
	VMOVDQU64 320(CX), Z5
	VMOVDQU64 384(CX), Z6
	VMOVDQU64 448(CX), Z7

encryptFour:
	GATHER(0)
	GATHER(64)
	GATHER(128)
	GATHER(192)
	GATHER(256)
	GATHER(320)
	GATHER(384)
	GATHER(448)
	MOVQ R12, R13
	MOVQ $4, R8

	PCALIGN $64
encryptStep:
	CHAIN(0, Z0)
	CHAIN(64, Z1)
	CHAIN(128, Z2)
	CHAIN(192, Z3)
	CHAIN(256, Z4)
	CHAIN(320, Z5)
	CHAIN(384, Z6)
	CHAIN(448, Z7)
	NINE32(VAESENC)
	CMPQ BX, $160
	JEQ  encryptLast
	ROUND32(VAESENC, Z26)
	ROUND32(VAESENC, Z27)
	CMPQ BX, $192
	JEQ  encryptLast
	ROUND32(VAESENC, Z28)
	ROUND32(VAESENC, Z29)

encryptLast:
	ROUND32(VAESENCLAST, Z30)
	VMOVDQA64 Z0, 0(R13)
	VMOVDQA64 Z1, 64(R13)
	VMOVDQA64 Z2, 128(R13)
	VMOVDQA64 Z3, 192(R13)
	VMOVDQA64 Z4, 256(R13)
	VMOVDQA64 Z5, 320(R13)
	VMOVDQA64 Z6, 384(R13)
	VMOVDQA64 Z7, 448(R13)
	ADDQ $512, R13
	DECQ R8
	JNE  encryptStep
	SCATTER(0)
	SCATTER(64)
	SCATTER(128)
	SCATTER(192)
	SCATTER(256)
	SCATTER(320)
	SCATTER(384)
	SCATTER(448)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, DX
	JNE  encryptFour
	VZEROUPPER
	RET

// UNCHAIN turns the state behind four blocks into plaintext: Z31 holds the ciphertext before the first of them in its
// upper quarter, cur their ciphertext. Xoring the last key into it keeps it off the path of the state.
#define UNCHAIN(before, cur, state) \
	VALIGNQ $6, before, cur, Z31; \
	VPXORQ Z30, Z31, Z31; \
	VAESDECLAST Z31, state, state

// func decryptVAES(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)
// Decrypts units one after the other, 512 bytes at a time, of which unit is a multiple.
TEXT ·decryptVAES(SB), NOSPLIT, $0-56
	MOVQ rk+0(FP), AX
	MOVQ rounds+8(FP), BX
	MOVQ dst+16(FP), DI
	MOVQ src+24(FP), SI
	MOVQ ivs+32(FP), CX
	MOVQ units+48(FP), R9
	SHLQ $4, BX
	KEYS
	CMPQ BX, $160
	JEQ  decryptUnit
	KEYS12
	CMPQ BX, $192
	JEQ  decryptUnit
	KEYS14

decryptUnit:
	MOVQ unit+40(FP), DX
	VBROADCASTI32X4 (CX), Z31
	ADDQ $16, CX

	PCALIGN $64
decryptStep:
	VMOVDQU64 0(SI), Z8
	VMOVDQU64 64(SI), Z9
	VMOVDQU64 128(SI), Z10
	VMOVDQU64 192(SI), Z11
	VMOVDQU64 256(SI), Z12
	VMOVDQU64 320(SI), Z13
	VMOVDQU64 384(SI), Z14
	VMOVDQU64 448(SI), Z15
	VPXORQ Z16, Z8, Z0
	VPXORQ Z16, Z9, Z1
	VPXORQ Z16, Z10, Z2
	VPXORQ Z16, Z11, Z3
	VPXORQ Z16, Z12, Z4
	VPXORQ Z16, Z13, Z5
	VPXORQ Z16, Z14, Z6
	VPXORQ Z16, Z15, Z7
	NINE32(VAESDEC)
	CMPQ BX, $160
	JEQ  decryptLast
	ROUND32(VAESDEC, Z26)
	ROUND32(VAESDEC, Z27)
	CMPQ BX, $192
	JEQ  decryptLast
	ROUND32(VAESDEC, Z28)
	ROUND32(VAESDEC, Z29)

decryptLast:
	UNCHAIN(Z31, Z8, Z0)
	UNCHAIN(Z8, Z9, Z1)
	UNCHAIN(Z9, Z10, Z2)
	UNCHAIN(Z10, Z11, Z3)
	UNCHAIN(Z11, Z12, Z4)
	UNCHAIN(Z12, Z13, Z5)
	UNCHAIN(Z13, Z14, Z6)
	UNCHAIN(Z14, Z15, Z7)
	VMOVDQA64 Z15, Z31
	VMOVDQU64 Z0, 0(DI)
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	VMOVDQU64 Z4, 256(DI)
	VMOVDQU64 Z5, 320(DI)
	VMOVDQU64 Z6, 384(DI)
	VMOVDQU64 Z7, 448(DI)
	ADDQ $512, SI
	ADDQ $512, DI
	SUBQ $512, DX
	JNE  decryptStep
	DECQ R9
	JNE  decryptUnit
	VZEROUPPER
	RET
