# docs/gallery/best.gp - columns of `data`: column, row, MFU (percent), reserved memory (GiB), fits (1 or 0), nodes, model. Left MFU, right
# memory of the fastest configuration that fits.
unset key
unset grid
unset colorbox
set xlabel 'GPUs (8 a node)' textcolor rgb ink
set xtics scale 0
set ytics scale 0
set xrange [-0.5:4.5]
set yrange [-0.5:3.5]
heading_y = 1.0 - 78.0/height
set tmargin at screen 1.0 - 104.0/height
set multiplot
cell(x, y) = column(5) == 1 ? sprintf(x, y) : 'no room'
set lmargin at screen 0.13
set rmargin at screen 0.54
set label 3 'MFU (%)' at screen 0.13, screen heading_y left textcolor rgb ink
set cbrange [25:60]
set palette defined (0 '#F7FBFF', 1 '#C6DBEF', 2 '#6BAED6', 3 '#2171B5')
plot data using 1:2:(column(5) == 1 ? column(3) : NaN):xtic(sprintf('%d', 8 * column(6))):ytic(7) with image, \
     data using 1:2:(cell('%.1f', column(3))) with labels textcolor rgb ink font ',12'
unset label 1
unset label 2
set label 3 'memory that one GPU reserves (GiB of 79)' at screen 0.57, screen heading_y left textcolor rgb ink
set lmargin at screen 0.57
set rmargin at screen 0.985
set format y ''
set cbrange [0:110]
set palette defined (0 '#FFF5EB', 1 '#FDD0A2', 2 '#FD8D3C', 3 '#D94801')
plot data using 1:2:(column(5) == 1 ? column(4) : NaN):xtic(sprintf('%d', 8 * column(6))) with image, \
     data using 1:2:(cell('%.0f', column(4))) with labels textcolor rgb ink font ',12'
unset multiplot
