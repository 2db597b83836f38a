// Package imagex converts images of package image to tensors, and tensors to images.
//
// Tensors hold colours that are not multiplied by their transparency, as image.NRGBA does; colours
// of image.RGBA are divided by it. Channels are red, green, blue and alpha, or brightness alone,
// with 8 bits; of 16-bit images the upper 8 bits are used. Uint8 goes from 0 to 255, Float32 from 0
// to 1.
//
// Of the source, read imagex.go first.
package imagex
