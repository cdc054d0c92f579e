# plots/topology.gp - a fabric. Columns of `data`: link, from, to, x0, y0, x1, y1, gb_per_s, across (0 or 1): links are
# drawn in straight pieces. Columns of `extra`: name, x, y, kind (gpu | switch), label (blank: none), side
# (plain | below | turned: where the label is).
width = 1200
height = tall < 380 ? 380 : tall > 1400 ? 1400 : int(tall)
edge = 0.02
load style
set datafile columnheaders
unset border
unset tics
unset grid
set lmargin at screen 0.02
set rmargin at screen 0.98
set bmargin at screen 48.0 / height
set tmargin at screen 1.0 - 84.0 / height
set key at screen 0.98, screen 20.0/height right center horizontal reverse Left samplen 2 textcolor rgb ink
set xrange [left:right]
set yrange [bottom:top]
set style fill solid 1.0 border rgb ink
set style textbox opaque noborder fillcolor rgb '#FFFFFF' margins 0.5,0.3
side(what) = stringcolumn('side') eq what ? column('x') : NaN
is(kind) = stringcolumn('kind') eq kind ? column('x') : NaN
piece(a) = column('across') == a ? column('x0') : NaN
dx(a) = column('x1') - column('x0')
dy(a) = column('y1') - column('y0')
plot data using (piece(1)):(column('y0')):(dx(0)):(dy(0)) with vectors nohead lw (crowded ? 0.6 : 1.2) lc rgb '#E69F00' \
         title (across > 0 ? across_label : ''), \
     data using (piece(0)):(column('y0')):(dx(0)):(dy(0)) with vectors nohead lw (crowded ? 0.8 : 1.6) lc rgb '#0072B2' \
         title (inside > 0 ? inside_label : ''), \
     extra using (is('switch')):(column('y')) with points pt 5 ps (crowded ? 0.8 : 1.5) lc rgb '#555555' \
         title (switches > 0 ? 'switch' : ''), \
     extra using (is('gpu')):(column('y')) with points pt 7 ps (crowded ? 0.8 : 1.5) lc rgb '#009E73' title 'GPU', \
     extra using (side('below')):(column('y')):(stringcolumn('label')) with labels font ',10' offset 0,-0.9 \
         textcolor rgb ink notitle, \
     extra using (side('plain')):(column('y')):(stringcolumn('label')) with labels font ',10' offset 0,1 boxed \
         textcolor rgb ink notitle, \
     extra using (side('turned')):(column('y')):(stringcolumn('label')) with labels font ',9' offset 0.4,0.6 \
         rotate by 60 left textcolor rgb ink notitle
