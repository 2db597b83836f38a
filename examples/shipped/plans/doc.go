// Package plans is where `make shipped` puts what the example would otherwise
// look for and compile when it runs. As long as it has not, there is nothing
// here, and the example starts as any program does.
package plans
