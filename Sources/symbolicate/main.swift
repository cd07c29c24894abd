Tool.run()
