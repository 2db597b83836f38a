package fusion

import "testing"

const geluCustom = `%0 = input : float32(32,512,2048)
%1 = mul %0 0.70710677 : float32(32,512,2048)
%2 = neg %1 : float32(32,512,2048)
%3 = abs %2 : float32(32,512,2048)
%4 = mul %3 0.3275911 : float32(32,512,2048)
%5 = add %4 1 : float32(32,512,2048)
%6 = recip %5 : float32(32,512,2048)
%7 = mul %6 1.0614054 : float32(32,512,2048)
%8 = add %7 -1.4531521 : float32(32,512,2048)
%9 = mul %8 %6 : float32(32,512,2048)
%10 = add %9 1.4214138 : float32(32,512,2048)
%11 = mul %10 %6 : float32(32,512,2048)
%12 = add %11 -0.28449672 : float32(32,512,2048)
%13 = mul %12 %6 : float32(32,512,2048)
%14 = add %13 0.2548296 : float32(32,512,2048)
%15 = mul %14 %6 : float32(32,512,2048)
%16 = mul %2 %2 : float32(32,512,2048)
%17 = neg %16 : float32(32,512,2048)
%18 = exp %17 : float32(32,512,2048)
%19 = mul %15 %18 : float32(32,512,2048)
%20 = neg %19 : float32(32,512,2048)
%21 = add %20 1 : float32(32,512,2048)
%22 = neg %21 : float32(32,512,2048)
%23 = abs %1 : float32(32,512,2048)
%24 = mul %23 0.3275911 : float32(32,512,2048)
%25 = add %24 1 : float32(32,512,2048)
%26 = recip %25 : float32(32,512,2048)
%27 = mul %26 1.0614054 : float32(32,512,2048)
%28 = add %27 -1.4531521 : float32(32,512,2048)
%29 = mul %28 %26 : float32(32,512,2048)
%30 = add %29 1.4214138 : float32(32,512,2048)
%31 = mul %30 %26 : float32(32,512,2048)
%32 = add %31 -0.28449672 : float32(32,512,2048)
%33 = mul %32 %26 : float32(32,512,2048)
%34 = add %33 0.2548296 : float32(32,512,2048)
%35 = mul %34 %26 : float32(32,512,2048)
%36 = mul %1 %1 : float32(32,512,2048)
%37 = neg %36 : float32(32,512,2048)
%38 = exp %37 : float32(32,512,2048)
%39 = mul %35 %38 : float32(32,512,2048)
%40 = neg %39 : float32(32,512,2048)
%41 = add %40 1 : float32(32,512,2048)
%42 = gt %1 0 : bool(32,512,2048)
%43 = where %42 %41 %22 : float32(32,512,2048)
%44 = add %43 1 : float32(32,512,2048)
%45 = mul %0 %44 : float32(32,512,2048)
%46 = mul %45 0.5 : float32(32,512,2048)
output %46
`

func BenchmarkExplore(b *testing.B) {
	seg := segmentOf(parseProgram(b, geluCustom))
	caps := testCaps()
	for _, m := range []Mode{Best, Greedy, Unfused} {
		b.Run("mode="+m.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := Explore(seg, caps, Options{Mode: m}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLayout(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"chain", geluCustom},
		{"broadcast", "%0 = input : float32(32,512,64)\n%1 = input : float32(64)\n%2 = add %0 %1 : float32(32,512,64)\noutput %2\n"},
		{"transpose", "%0 = input : float32(512,64)\n%1 = permute %0 axes=1,0 : float32(64,512)\n%2 = add %1 1 : float32(64,512)\noutput %2\n"},
	} {
		seg := segmentOf(parseProgram(b, c.text))
		p, err := Explore(seg, testCaps(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("plan="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Layout(seg, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
