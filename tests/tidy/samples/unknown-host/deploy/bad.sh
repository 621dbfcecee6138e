curl https://downloads.somewhere.dev/file
