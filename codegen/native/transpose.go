package native
func (g *dotGen) transposes() {}
