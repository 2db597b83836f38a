package amd64

import "github.com/millrace-go/millrace/codegen/native"

// Each instruction of the vector units is an entry of this table. VEX (AVX2) and EVEX (AVX-512)
// share an entry: they differ only in the prefix and in the value of W.

// Opcode maps and mandatory prefixes, with the numbers that VEX and EVEX use.
const (
	m0F   = 1
	m0F38 = 2
	m0F3A = 3

	np  = 0
	p66 = 1
	pF3 = 2
	pF2 = 3
)

// form says where the operands go: R is ModRM.reg, V the prefix's vvvv, M ModRM.rm, in the order of
// Intel's syntax. I is an immediate byte, 4 a register in the upper half of one.
type form uint8

const (
	formRVM form = iota
	formRM
	formMR
	formRVMI
	formRMI
	formMRI
	formRVM4
	formVMI // ModRM.reg is part of the opcode: ext
	formMVR
)

// The prefixes that an instruction can have.
const (
	both uint8 = iota
	vexOnly
	evexOnly
)

// Kinds of registers.
const (
	vec uint8 = iota // xmm, ymm or zmm
	mask
	gpr32
	gpr64
)

type opInfo struct {
	name   string
	evex   string // its EVEX name if that differs
	prefix uint8  // np …
	table  uint8  // m0F …
	code   byte
	form   form
	w      uint8 // W of EVEX: 1 for elements of 64 bits
	vw     uint8 // W of VEX
	only   uint8
	elem   uint8 // bytes of an element that may be broadcast from memory; 0: none
	ext    uint8 // of formVMI
	// The size of the ModRM.rm operand is the vector's size shifted right by half, that of the
	// ModRM.reg operand the vector's size shifted right by rhalf.
	half, rhalf uint8
	scalar      uint8 // bytes of a memory operand that is one element; 0: a vector
	reg, RM     uint8 // kinds of registers
	commutes    bool
}

const (
	_ native.Op = iota
	vaddps
	vaddpd
	vsubps
	vsubpd
	vmulps
	vmulpd
	vdivps
	vdivpd
	vsqrtps
	vsqrtpd
	vminps
	vminpd
	vmaxps
	vmaxpd
	vpternlogd
	vrangeps
	vrangepd
	vfmadd132ps
	vfmadd132pd
	vfmadd213ps
	vfmadd213pd
	vfmadd231ps
	vfmadd231pd
	vfmsub231ps
	vfmsub231pd
	vfnmadd231ps
	vfnmadd231pd
	vpaddb
	vpmaxub
	vpminub
	vpaddd
	vpaddq
	vpsubd
	vpsubq
	vpmulld
	vpmullq
	vpmuludq
	vpand
	vpandq
	vpandn
	vpandnq
	vpor
	vporq
	vpxor
	vpxorq
	vpsllvd
	vpsllvq
	vpsrlvd
	vpsrlvq
	vpsravd
	vpsravq
	vpslld
	vpsllq
	vpsrld
	vpsrlq
	vpsrad
	vpabsd
	vpabsq
	vpminsd
	vpmaxsd
	vpminud
	vpmaxud
	vpminsq
	vpmaxsq
	vpminuq
	vpmaxuq
	vpcmpeqd
	vpcmpeqq
	vpcmpgtd
	vpcmpgtq
	vcmpps
	vcmppd
	kcmpps
	kcmppd
	vpcmpd
	vpcmpq
	vpcmpud
	vpcmpuq
	vptestmd
	vptestmq
	vroundps
	vroundpd
	vrndscaleps
	vrndscalepd
	vblendvps
	vblendvpd
	vblendmps
	vblendmpd
	vmovups
	vmovupsTo
	vmovupd
	vmovupdTo
	vmovaps
	vmovntps
	vmaskmovps
	vmaskmovpsTo
	vmaskmovpd
	vmaskmovpdTo
	vbroadcastss
	vbroadcastsd
	vpbroadcastdR
	vpbroadcastqR
	vmovd
	vmovdTo
	vmovqR
	vmovqTo
	vpmovzxbd
	vpmovsxbd
	vpmovzxwd
	vpmovsxwd
	vpmovzxdq
	vpmovsxdq
	vpmovdb
	vpmovdw
	vpmovqd
	vpackusdw
	vpackuswb
	vpermq
	vshufps
	vinserti128
	vextracti128
	vextracti32x4
	vextracti64x4
	vpshufd
	vinserti32x4
	vpinsrd
	vpinsrq
	vcvtdq2ps
	vcvttps2dq
	vcvtudq2ps
	vcvttps2udq
	vcvtps2pd
	vcvtpd2ps
	vcvtdq2pd
	vcvtudq2pd
	vcvttpd2dq
	vcvttpd2udq
	vcvtqq2pd
	vcvtuqq2pd
	vcvtqq2ps
	vcvtuqq2ps
	vcvttps2qq
	vcvttps2uqq
	vcvttpd2qq
	vcvttpd2uqq
	vcvtsi2ss
	vcvttsd2si
	vmovss
	vmovssTo
	vmovsd
	vmovsdTo
	vmovmskps
	vmovmskpd
	kandw
	kandnw
	knotw
	korw
	kxnorw
	kxorw
	kortestw
	kmovw
	kmovwTo
	kmovwR
	kmovwRTo
	numVecOps
)

// fp and fpd are float arithmetic on 32 and 64 bits.
func fp(name string, code byte, commutes bool) opInfo {
	return opInfo{name: name, prefix: np, table: m0F, code: code, elem: 4, commutes: commutes}
}

func fpd(name string, code byte, commutes bool) opInfo {
	return opInfo{name: name, prefix: p66, table: m0F, code: code, w: 1, elem: 8, commutes: commutes}
}

// pi is integer arithmetic with prefix 66; elem is the bytes of an element.
func pi(name string, table uint8, code byte, elem uint8, commutes bool) opInfo {
	return opInfo{name: name, prefix: p66, table: table, code: code, w: elem / 8, elem: elem, commutes: commutes}
}

func named(o opInfo, evex string) opInfo { o.evex = evex; return o }
func only(o opInfo, which uint8) opInfo  { o.only = which; return o }
func as(o opInfo, f form) opInfo         { o.form = f; return o }

func shiftBy(name string, code byte, ext, elem uint8) opInfo {
	return opInfo{name: name, prefix: p66, table: m0F, code: code, form: formVMI, w: elem / 8, elem: elem, ext: ext}
}

func fma(name string, code byte, elem uint8) opInfo {
	return opInfo{name: name, prefix: p66, table: m0F38, code: code, w: elem / 8, vw: elem / 8, elem: elem}
}

// cvt is a conversion; from and to are the bytes of elements.
func cvt(name string, prefix uint8, code byte, w, from, to uint8, which uint8) opInfo {
	o := opInfo{name: name, prefix: prefix, table: m0F, code: code, form: formRM, w: w, only: which, elem: from}
	switch {
	case from < to:
		o.half = 1
	case from > to:
		o.rhalf = 1
	}
	return o
}

// widening is a load of small elements, which take the vector's size shifted right by half.
func widening(name string, code byte, half uint8) opInfo {
	return opInfo{name: name, prefix: p66, table: m0F38, code: code, form: formRM, half: half}
}

func narrowing(name string, code byte, half uint8) opInfo {
	return opInfo{name: name, prefix: pF3, table: m0F38, code: code, form: formMR, half: half, only: evexOnly}
}

// compares is a comparison with its result in a mask register.
func compares(name string, prefix, table uint8, code byte, elem uint8, f form) opInfo {
	return opInfo{name: name, prefix: prefix, table: table, code: code, form: f, w: elem / 8, only: evexOnly, elem: elem, reg: mask}
}

func kop(name string, code byte, l uint8) opInfo {
	f := formRVM
	if l == 0 {
		f = formRM
	}
	return opInfo{name: name, table: m0F, code: code, form: f, only: vexOnly, reg: mask, RM: mask}
}

func insert(name string, table uint8, code byte, w, scalar, rm uint8) opInfo {
	return opInfo{name: name, prefix: p66, table: table, code: code, form: formRVMI, w: w, vw: w, scalar: scalar, RM: rm}
}

var opTable = [numVecOps]opInfo{
	vaddps: fp("vaddps", 0x58, true), vaddpd: fpd("vaddpd", 0x58, true),
	vsubps: fp("vsubps", 0x5c, false), vsubpd: fpd("vsubpd", 0x5c, false),
	vmulps: fp("vmulps", 0x59, true), vmulpd: fpd("vmulpd", 0x59, true),
	vdivps: fp("vdivps", 0x5e, false), vdivpd: fpd("vdivpd", 0x5e, false),
	vsqrtps: as(fp("vsqrtps", 0x51, false), formRM), vsqrtpd: as(fpd("vsqrtpd", 0x51, false), formRM),
	vminps: fp("vminps", 0x5d, false), vminpd: fpd("vminpd", 0x5d, false),
	vmaxps: fp("vmaxps", 0x5f, false), vmaxpd: fpd("vmaxpd", 0x5f, false),
	vrangeps: only(as(pi("vrangeps", m0F3A, 0x50, 4, false), formRVMI), evexOnly), vrangepd: only(as(pi("vrangepd", m0F3A, 0x50, 8, false), formRVMI), evexOnly),
	vpternlogd:  only(as(pi("vpternlogd", m0F3A, 0x25, 4, false), formRVMI), evexOnly),
	vfmadd132ps: fma("vfmadd132ps", 0x98, 4), vfmadd132pd: fma("vfmadd132pd", 0x98, 8),
	vfmadd213ps: fma("vfmadd213ps", 0xa8, 4), vfmadd213pd: fma("vfmadd213pd", 0xa8, 8),
	vfmadd231ps: fma("vfmadd231ps", 0xb8, 4), vfmadd231pd: fma("vfmadd231pd", 0xb8, 8),
	vfmsub231ps: fma("vfmsub231ps", 0xba, 4), vfmsub231pd: fma("vfmsub231pd", 0xba, 8),
	vfnmadd231ps: fma("vfnmadd231ps", 0xbc, 4), vfnmadd231pd: fma("vfnmadd231pd", 0xbc, 8),

	vpaddb: pi("vpaddb", m0F, 0xfc, 0, true), vpmaxub: pi("vpmaxub", m0F, 0xde, 0, true), vpminub: pi("vpminub", m0F, 0xda, 0, true),
	vpaddd: pi("vpaddd", m0F, 0xfe, 4, true), vpaddq: pi("vpaddq", m0F, 0xd4, 8, true),
	vpsubd: pi("vpsubd", m0F, 0xfa, 4, false), vpsubq: pi("vpsubq", m0F, 0xfb, 8, false),
	vpmulld: pi("vpmulld", m0F38, 0x40, 4, true), vpmullq: only(pi("vpmullq", m0F38, 0x40, 8, true), evexOnly),
	vpmuludq: pi("vpmuludq", m0F, 0xf4, 8, true),
	vpand:    named(pi("vpand", m0F, 0xdb, 4, true), "vpandd"), vpandq: only(pi("vpandq", m0F, 0xdb, 8, true), evexOnly),
	vpandn: named(pi("vpandn", m0F, 0xdf, 4, false), "vpandnd"), vpandnq: only(pi("vpandnq", m0F, 0xdf, 8, false), evexOnly),
	vpor: named(pi("vpor", m0F, 0xeb, 4, true), "vpord"), vporq: only(pi("vporq", m0F, 0xeb, 8, true), evexOnly),
	vpxor: named(pi("vpxor", m0F, 0xef, 4, true), "vpxord"), vpxorq: only(pi("vpxorq", m0F, 0xef, 8, true), evexOnly),

	vpsllvd: pi("vpsllvd", m0F38, 0x47, 4, false), vpsllvq: {name: "vpsllvq", prefix: p66, table: m0F38, code: 0x47, w: 1, vw: 1, elem: 8},
	vpsrlvd: pi("vpsrlvd", m0F38, 0x45, 4, false), vpsrlvq: {name: "vpsrlvq", prefix: p66, table: m0F38, code: 0x45, w: 1, vw: 1, elem: 8},
	vpsravd: pi("vpsravd", m0F38, 0x46, 4, false), vpsravq: only(pi("vpsravq", m0F38, 0x46, 8, false), evexOnly),
	vpslld: shiftBy("vpslld", 0x72, 6, 4), vpsllq: shiftBy("vpsllq", 0x73, 6, 8),
	vpsrld: shiftBy("vpsrld", 0x72, 2, 4), vpsrlq: shiftBy("vpsrlq", 0x73, 2, 8),
	vpsrad: shiftBy("vpsrad", 0x72, 4, 4),

	vpabsd: as(pi("vpabsd", m0F38, 0x1e, 4, false), formRM), vpabsq: only(as(pi("vpabsq", m0F38, 0x1f, 8, false), formRM), evexOnly),
	vpminsd: pi("vpminsd", m0F38, 0x39, 4, true), vpmaxsd: pi("vpmaxsd", m0F38, 0x3d, 4, true),
	vpminsq: only(pi("vpminsq", m0F38, 0x39, 8, true), evexOnly), vpmaxsq: only(pi("vpmaxsq", m0F38, 0x3d, 8, true), evexOnly),
	vpminuq: only(pi("vpminuq", m0F38, 0x3b, 8, true), evexOnly), vpmaxuq: only(pi("vpmaxuq", m0F38, 0x3f, 8, true), evexOnly),
	vpminud: pi("vpminud", m0F38, 0x3b, 4, true), vpmaxud: pi("vpmaxud", m0F38, 0x3f, 4, true),

	vpcmpeqd: only(pi("vpcmpeqd", m0F, 0x76, 4, true), vexOnly), vpcmpeqq: only(pi("vpcmpeqq", m0F38, 0x29, 8, true), vexOnly),
	vpcmpgtd: only(pi("vpcmpgtd", m0F, 0x66, 4, false), vexOnly), vpcmpgtq: only(pi("vpcmpgtq", m0F38, 0x37, 8, false), vexOnly),
	vcmpps: only(as(fp("vcmpps", 0xc2, false), formRVMI), vexOnly), vcmppd: only(as(fpd("vcmppd", 0xc2, false), formRVMI), vexOnly),
	kcmpps: compares("vcmpps", np, m0F, 0xc2, 4, formRVMI), kcmppd: compares("vcmppd", p66, m0F, 0xc2, 8, formRVMI),
	vpcmpd: compares("vpcmpd", p66, m0F3A, 0x1f, 4, formRVMI), vpcmpq: compares("vpcmpq", p66, m0F3A, 0x1f, 8, formRVMI),
	vpcmpud: compares("vpcmpud", p66, m0F3A, 0x1e, 4, formRVMI), vpcmpuq: compares("vpcmpuq", p66, m0F3A, 0x1e, 8, formRVMI),
	vptestmd: compares("vptestmd", p66, m0F38, 0x27, 4, formRVM), vptestmq: compares("vptestmq", p66, m0F38, 0x27, 8, formRVM),

	vroundps:    only(opInfo{name: "vroundps", prefix: p66, table: m0F3A, code: 0x08, form: formRMI}, vexOnly),
	vroundpd:    only(opInfo{name: "vroundpd", prefix: p66, table: m0F3A, code: 0x09, form: formRMI}, vexOnly),
	vrndscaleps: only(as(pi("vrndscaleps", m0F3A, 0x08, 4, false), formRMI), evexOnly),
	vrndscalepd: only(as(pi("vrndscalepd", m0F3A, 0x09, 8, false), formRMI), evexOnly),
	vblendvps:   {name: "vblendvps", prefix: p66, table: m0F3A, code: 0x4a, form: formRVM4, only: vexOnly},
	vblendvpd:   {name: "vblendvpd", prefix: p66, table: m0F3A, code: 0x4b, form: formRVM4, only: vexOnly},
	vblendmps:   only(pi("vblendmps", m0F38, 0x65, 4, false), evexOnly),
	vblendmpd:   only(pi("vblendmpd", m0F38, 0x65, 8, false), evexOnly),

	vmovups: {name: "vmovups", table: m0F, code: 0x10, form: formRM}, vmovupsTo: {name: "vmovups", table: m0F, code: 0x11, form: formMR},
	vmovupd: {name: "vmovupd", prefix: p66, table: m0F, code: 0x10, form: formRM, w: 1}, vmovupdTo: {name: "vmovupd", prefix: p66, table: m0F, code: 0x11, form: formMR, w: 1},
	vmovaps: {name: "vmovaps", table: m0F, code: 0x28, form: formRM}, vmovntps: {name: "vmovntps", table: m0F, code: 0x2b, form: formMR},
	vmaskmovps: {name: "vmaskmovps", prefix: p66, table: m0F38, code: 0x2c, only: vexOnly}, vmaskmovpd: {name: "vmaskmovpd", prefix: p66, table: m0F38, code: 0x2d, only: vexOnly},
	vmaskmovpsTo: {name: "vmaskmovps", prefix: p66, table: m0F38, code: 0x2e, form: formMVR, only: vexOnly}, vmaskmovpdTo: {name: "vmaskmovpd", prefix: p66, table: m0F38, code: 0x2f, form: formMVR, only: vexOnly},
	vbroadcastss:  {name: "vbroadcastss", prefix: p66, table: m0F38, code: 0x18, form: formRM, scalar: 4},
	vbroadcastsd:  {name: "vbroadcastsd", prefix: p66, table: m0F38, code: 0x19, form: formRM, w: 1, scalar: 8},
	vpbroadcastdR: {name: "vpbroadcastd", prefix: p66, table: m0F38, code: 0x7c, form: formRM, only: evexOnly, scalar: 4, RM: gpr32},
	vpbroadcastqR: {name: "vpbroadcastq", prefix: p66, table: m0F38, code: 0x7c, form: formRM, w: 1, only: evexOnly, scalar: 8, RM: gpr64},
	vmovd:         {name: "vmovd", prefix: p66, table: m0F, code: 0x6e, form: formRM, scalar: 4, RM: gpr32},
	vmovdTo:       {name: "vmovd", prefix: p66, table: m0F, code: 0x7e, form: formMR, scalar: 4, RM: gpr32},
	vmovqR:        {name: "vmovq", prefix: p66, table: m0F, code: 0x6e, form: formRM, w: 1, vw: 1, scalar: 8, RM: gpr64},

	vmovqTo: {name: "vmovq", prefix: p66, table: m0F, code: 0xd6, form: formMR, w: 1, scalar: 8},

	vpmovzxbd: widening("vpmovzxbd", 0x31, 2), vpmovsxbd: widening("vpmovsxbd", 0x21, 2),
	vpmovzxwd: widening("vpmovzxwd", 0x33, 1), vpmovsxwd: widening("vpmovsxwd", 0x23, 1),
	vpmovzxdq: widening("vpmovzxdq", 0x35, 1), vpmovsxdq: widening("vpmovsxdq", 0x25, 1),
	vpmovdb: narrowing("vpmovdb", 0x31, 2), vpmovdw: narrowing("vpmovdw", 0x33, 1), vpmovqd: narrowing("vpmovqd", 0x35, 1),
	vpackusdw: {name: "vpackusdw", prefix: p66, table: m0F38, code: 0x2b}, vpackuswb: {name: "vpackuswb", prefix: p66, table: m0F, code: 0x67},
	vpermq:        {name: "vpermq", prefix: p66, table: m0F3A, code: 0x00, form: formRMI, w: 1, vw: 1, elem: 8},
	vshufps:       as(fp("vshufps", 0xc6, false), formRVMI),
	vinserti128:   {name: "vinserti128", prefix: p66, table: m0F3A, code: 0x38, form: formRVMI, only: vexOnly, half: 1},
	vextracti32x4: {name: "vextracti32x4", prefix: p66, table: m0F3A, code: 0x39, form: formMRI, only: evexOnly, scalar: 16},
	vextracti64x4: {name: "vextracti64x4", prefix: p66, table: m0F3A, code: 0x3b, form: formMRI, w: 1, only: evexOnly, half: 1},
	vpshufd:       {name: "vpshufd", prefix: p66, table: m0F, code: 0x70, form: formRMI, elem: 4},
	vextracti128:  {name: "vextracti128", prefix: p66, table: m0F3A, code: 0x39, form: formMRI, only: vexOnly, half: 1},
	vinserti32x4:  {name: "vinserti32x4", prefix: p66, table: m0F3A, code: 0x38, form: formRVMI, only: evexOnly, scalar: 16},

	vpinsrd: insert("vpinsrd", m0F3A, 0x22, 0, 4, gpr32), vpinsrq: insert("vpinsrq", m0F3A, 0x22, 1, 8, gpr64),

	vcvtdq2ps: cvt("vcvtdq2ps", np, 0x5b, 0, 4, 4, both), vcvttps2dq: cvt("vcvttps2dq", pF3, 0x5b, 0, 4, 4, both),
	vcvtudq2ps: cvt("vcvtudq2ps", pF2, 0x7a, 0, 4, 4, evexOnly), vcvttps2udq: cvt("vcvttps2udq", np, 0x78, 0, 4, 4, evexOnly),
	vcvtps2pd: cvt("vcvtps2pd", np, 0x5a, 0, 4, 8, both), vcvtpd2ps: cvt("vcvtpd2ps", p66, 0x5a, 1, 8, 4, both),
	vcvtdq2pd: cvt("vcvtdq2pd", pF3, 0xe6, 0, 4, 8, both), vcvtudq2pd: cvt("vcvtudq2pd", pF3, 0x7a, 0, 4, 8, evexOnly),
	vcvttpd2dq: cvt("vcvttpd2dq", p66, 0xe6, 1, 8, 4, both), vcvttpd2udq: cvt("vcvttpd2udq", np, 0x78, 1, 8, 4, evexOnly),
	vcvtqq2pd: cvt("vcvtqq2pd", pF3, 0xe6, 1, 8, 8, evexOnly), vcvtuqq2pd: cvt("vcvtuqq2pd", pF3, 0x7a, 1, 8, 8, evexOnly),
	vcvtqq2ps: cvt("vcvtqq2ps", np, 0x5b, 1, 8, 4, evexOnly), vcvtuqq2ps: cvt("vcvtuqq2ps", pF2, 0x7a, 1, 8, 4, evexOnly),
	vcvttps2qq: cvt("vcvttps2qq", p66, 0x7a, 0, 4, 8, evexOnly), vcvttps2uqq: cvt("vcvttps2uqq", p66, 0x78, 0, 4, 8, evexOnly),
	vcvttpd2qq: cvt("vcvttpd2qq", p66, 0x7a, 1, 8, 8, evexOnly), vcvttpd2uqq: cvt("vcvttpd2uqq", p66, 0x78, 1, 8, 8, evexOnly),
	vcvtsi2ss:  {name: "vcvtsi2ss", prefix: pF3, table: m0F, code: 0x2a, w: 1, vw: 1, scalar: 8, RM: gpr64},
	vcvttsd2si: {name: "vcvttsd2si", prefix: pF2, table: m0F, code: 0x2c, form: formRM, w: 1, vw: 1, scalar: 8, reg: gpr64},
	vmovss:     {name: "vmovss", prefix: pF3, table: m0F, code: 0x10, form: formRM, scalar: 4},
	vmovssTo:   {name: "vmovss", prefix: pF3, table: m0F, code: 0x11, form: formMR, scalar: 4},
	vmovsd:     {name: "vmovsd", prefix: pF2, table: m0F, code: 0x10, form: formRM, w: 1, scalar: 8},
	vmovsdTo:   {name: "vmovsd", prefix: pF2, table: m0F, code: 0x11, form: formMR, w: 1, scalar: 8},

	vmovmskps: {name: "vmovmskps", table: m0F, code: 0x50, form: formRM, only: vexOnly, reg: gpr32},
	vmovmskpd: {name: "vmovmskpd", prefix: p66, table: m0F, code: 0x50, form: formRM, only: vexOnly, reg: gpr32},

	kandw: kop("kandw", 0x41, 1), kandnw: kop("kandnw", 0x42, 1), knotw: kop("knotw", 0x44, 0), korw: kop("korw", 0x45, 1),
	kxnorw: kop("kxnorw", 0x46, 1), kxorw: kop("kxorw", 0x47, 1), kortestw: kop("kortestw", 0x98, 0),
	kmovw:    {name: "kmovw", table: m0F, code: 0x90, form: formRM, only: vexOnly, scalar: 2, reg: mask, RM: mask},
	kmovwTo:  {name: "kmovw", table: m0F, code: 0x91, form: formMR, only: vexOnly, scalar: 2, reg: mask, RM: mask},
	kmovwR:   {name: "kmovw", table: m0F, code: 0x92, form: formRM, only: vexOnly, reg: mask, RM: gpr32},
	kmovwRTo: {name: "kmovw", table: m0F, code: 0x93, form: formRM, only: vexOnly, reg: gpr32, RM: mask},
}
